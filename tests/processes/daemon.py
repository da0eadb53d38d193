"""Minimal daemon with processes: adopts those that it finds, starts new ones, and waits to be killed.

    python -m tests.processes.daemon ROOT COUNT COMMAND...

It prints "ready N" once N processes run, each with its own id; `{}` in the command is the process's number.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from hermes.domain.process.process import Handle, ProcessSpec
from hermes.processes.host import LinuxProcessHost
from tests.processes.stage import ENVIRON, process_id


def main() -> None:
    root, count, *command = sys.argv[1:]
    host = LinuxProcessHost(Path(root))
    known = {name: host.adopt(Path(root, name)) for name in host.stored()}
    for number in range(int(count)):
        name = process_id(Path(root), number)
        if name not in known:
            argv = tuple(part.replace("{}", str(number)) for part in command)
            started = host.start(ProcessSpec(id=name, argv=argv, cwd=str(Path(root).parent), environ=ENVIRON))
            assert isinstance(started, Handle), started
            known[name] = started
            print("started", name, flush=True)
    print("ready", sum(isinstance(each, Handle) and host.look(each).alive for each in known.values()), flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
