"""`make fuzz`: generated requests against the real daemon, judged by its OpenAPI document.

schemathesis is installed in an exact version outside the repository, in the folder that HERMES_TEST_CLIENTS names, or
in ~/.cache/hermes-test. FUZZ holds further arguments, also those of `schemathesis run`. For example
`FUZZ="--cases 20 --include-operation-id createRun"`.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.clients.install import cache_folder
from tests.fuzz.configuration import configuration
from tests.fuzz.seed import seed
from tests.support.daemon_process import DaemonProcess

PACKAGE = "schemathesis==4.32.5"
COPIES = 8  # of state that a request uses up


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--cases", type=int, default=400, help="cases for each operation")
    parser.add_argument("--seed", type=int, default=1)
    chosen, others = parser.parse_known_args(arguments)
    command = str(_installed())
    with DaemonProcess() as daemon, tempfile.TemporaryDirectory(prefix="hermes-fuzz-") as folder:
        settings = Path(folder) / "schemathesis.toml"
        settings.write_text(configuration(seed(daemon, COPIES), daemon.key), encoding="utf-8")
        run = [
            *(command, "--config-file", str(settings), "run", f"{daemon.address}/openapi.json", *others),
            *("--checks", "all", "--max-examples", str(chosen.cases), "--seed", str(chosen.seed)),
            *("--continue-on-failure", "--workers", "1", "--no-color"),
        ]
        code = subprocess.run(run, cwd=folder, check=False).returncode
        problems = [line for line in daemon.stderr().splitlines() if "ERROR" in line or "Traceback" in line]
    print(*problems[:20], sep="\n")
    return code or bool(problems)


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
