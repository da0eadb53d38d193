"""`make fuzz`: generated requests against the real daemon, judged by its OpenAPI document.

schemathesis is installed in an exact version outside the repository, in the folder that HERMES_TEST_CLIENTS names, or
in ~/.cache/hermes-test. FUZZ holds further arguments, also those of `schemathesis run`. For example
`FUZZ="--cases 20 --include-operation-id createRun"`. An interrupted run reports what it counted.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.clients.install import cache_folder
from tests.fuzz.configuration import OF_PROVIDERS, configuration
from tests.fuzz.progress import Progress, Tally
from tests.fuzz.provider import provider
from tests.fuzz.seed import Ids, seed
from tests.support.daemon_process import DaemonProcess

PACKAGE = "schemathesis==4.32.5"
COPIES = 8  # of state that a request uses up
_END_S = 60.0  # for the summary of an interrupted run
_SHOWN_LINES = 60  # of an error in the log


class Part(NamedTuple):
    """Exit status, counts, and the operations of which no request succeeded."""

    code: int
    tally: Tally
    unreached: list[str]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--cases", type=int, default=400, help="cases for each operation")
    parser.add_argument("--seed", type=int, default=1)
    chosen, others = parser.parse_known_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    own = ["--max-examples", str(chosen.cases), "--seed", str(chosen.seed), *others]
    parts: list[Part] = []
    try:
        with DaemonProcess(config="api: {allow_yolo: true}\n") as daemon:
            excluded = [each for path in OF_PROVIDERS for each in ("--exclude-path", path)]
            parts.append(_run(daemon, seed(daemon, COPIES), [*own, *excluded]))
        if not any(each.startswith("--include") for each in others):
            with provider() as config, DaemonProcess(config=config, environ={"FUZZ_KEY": "sk-fuzz"}) as daemon:
                included = [each for path in OF_PROVIDERS for each in ("--include-path", path)]
                parts.append(_run(daemon, {}, [*own, *included]))
    except KeyboardInterrupt:
        parts.append(Part(1, Tally(), []))
    unreached = [name for part in parts for name in part.unreached]
    cases, findings = (sum(getattr(part.tally, name) for part in parts) for name in ("cases", "findings"))
    print(f"fuzz: {cases} cases, {findings} failed checks, no success of: {', '.join(unreached) or 'none'}")
    return int(any(part.code for part in parts) or bool(unreached))


def _run(daemon: DaemonProcess, ids: Ids, arguments: list[str]) -> Part:
    """Run the fuzzer once. A problem in the daemon's log is a failure."""
    document = daemon.request("GET", "/openapi.json").json()
    with tempfile.TemporaryDirectory(prefix="hermes-fuzz-") as folder:
        settings, report = Path(folder) / "schemathesis.toml", Path(folder) / "report.ndjson"
        settings.write_text(configuration(document, ids, daemon.key), encoding="utf-8")
        command = [
            *(str(_installed()), "--config-file", str(settings), "run", f"{daemon.address}/openapi.json", *arguments),
            *("--checks", "all", "--continue-on-failure", "--workers", "1", "--no-color"),
            *("--report", "ndjson", "--report-ndjson-path", str(report)),
        ]
        with Progress(report, lambda line: print(line, flush=True)) as progress:
            code = _finished(command, folder)
    lines = daemon.stderr().splitlines()
    problems = [number for number, line in enumerate(lines) if "ERROR" in line]
    for number in problems[:5]:
        print(*lines[number : number + _SHOWN_LINES], sep="\n")  # with the traceback
    return Part(code or int(bool(problems)), progress.tally, progress.tally.unreached(document))


def _finished(command: list[str], folder: str) -> int:
    """Run the command. On an interrupt it prints its summary; the result is then a failure."""
    with subprocess.Popen(command, cwd=folder, start_new_session=True) as child:
        try:
            return child.wait()
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)
            child.wait(_END_S)
            return 1


def _installed() -> Path:
    folder = cache_folder() / PACKAGE.replace("==", "-")
    if not (folder / "installed").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(folder / "bin" / "pip"), "install", "--quiet", PACKAGE], check=True)
        (folder / "installed").touch()
    return folder / "bin" / "schemathesis"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
