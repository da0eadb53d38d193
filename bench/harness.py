"""Processes that the bench measures, and what the kernel says about them."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
MODULE_DAEMON = ("-m", "hermes.cli.main", "daemon")


class Served(NamedTuple):
    """A process that answers chat completions."""

    address: str
    key: str
    pid: int


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield an empty folder on the disk of the current directory."""
    with tempfile.TemporaryDirectory(prefix="hermes-bench-", dir=Path.cwd()) as folder:
        yield Path(folder)


@contextmanager
def server(module: str, *arguments: str) -> Iterator[Served]:
    """Run a module of the bench that prints its address first."""
    many_descriptors()
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            yield Served(process.stdout.readline().decode().strip(), "", process.pid)
        finally:
            process.terminate()


@contextmanager
def daemon(home: Path, model: str = "", *, config: str = "", wrapper: tuple[str, ...] = ()) -> Iterator[Served]:
    """Run the daemon with its defaults and a log at WARNING. `wrapper`: more arguments of the interpreter."""
    many_descriptors()
    home.mkdir(mode=0o700, exist_ok=True)
    if config:
        (home / "config.yaml").write_text(config)
    command = [sys.executable, *wrapper, *MODULE_DAEMON]
    with subprocess.Popen(
        command, env=environ(home, model), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline().decode()
            assert " is ready at " in line, f"the daemon did not start: {line}"
            address = line.split(" is ready at ")[1].split()[0]
            yield Served(address, (home / "api.key").read_text().strip(), process.pid)
        finally:
            process.terminate()
            process.stdout.read()


def environ(home: Path, model: str = "") -> dict[str, str]:
    """Return the environment of a daemon whose model is the server at this address; empty: the offline model."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HERMES_")}
    kept |= {
        "HERMES_HOME": str(home),
        "HERMES_API_PORT": "0",
        "HERMES_AUXILIARY_TITLE": "none",  # one model call a turn
        "HERMES_AUXILIARY_REVIEW": "none",
        "HERMES_LOG_LEVEL": "WARNING",
        "HERMES_TERMINAL_CWD": str(home.parent),
    }
    if model:
        kept |= {
            "HERMES_MODEL_PROVIDER": "openai",
            "HERMES_MODEL_BASE_URL": f"{model}/v1",
            "HERMES_MODEL_NAME": "bench",
            "HERMES_MODEL_API_KEY_ENV": "",
            "HERMES_MODEL_CONTEXT_WINDOW": "100000000",
        }
    return kept


def many_descriptors() -> None:
    """Allow this process and those that it starts as many open files as the system permits."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


# ---------------------------------------------------------------- what the kernel says


def cpu_s(pid: int) -> float:
    """Return the processor time of all threads of a process."""
    return time.clock_gettime(~pid << 3 | 2)  # the clock of another process; see clock_getcpuclockid(3)


def memory_mb(pid: int, field: str = "VmRSS") -> float:
    """Return the resident memory of a process. `RssAnon` leaves out files, such as the pages of the store."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith(f"{field}:"))


def descriptors(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
