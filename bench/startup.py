"""Start-up of commands, compared with that of the interpreter: least processor time of interleaved runs.

Processor time, because other load changes the elapsed time of so short a program by a multiple.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

from tests.support.daemon_process import DaemonProcess

_RUNS = 15
_HERMES = (sys.executable, "-m", "hermes.cli.main")
_INTERPRETER = (sys.executable, "-c", "pass")


def run() -> dict[str, float]:
    with DaemonProcess() as daemon:
        environ = {**os.environ, "HERMES_HOME": str(daemon.home)}
        python_s, version_s, ps_s = shortest(
            [_INTERPRETER, (*_HERMES, "--version"), (*_HERMES, "ps")], environ, runs=_RUNS
        )
    return {
        "python_ms": 1e3 * python_s,
        "version_ms": 1e3 * version_s,
        "ps_ms": 1e3 * ps_s,
        "version_to_python": version_s / python_s,
        "ps_to_python": ps_s / python_s,
    }


def shortest(commands: list[tuple[str, ...]], environ: dict[str, str], *, runs: int) -> list[float]:
    """Return the least processor time of each command in seconds. The runs alternate: load affects all of them."""
    times: list[list[float]] = [[] for _ in commands]
    for _ in range(runs):
        for command, measured in zip(commands, times, strict=True):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            measured.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return [min(measured) for measured in times]


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
