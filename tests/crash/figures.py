"""What a real daemon uses of the machine, for the judge: memory, threads, descriptors, and readers of its store.

The limits are well above what the suites' load needs, so that only what grows gets there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.support.daemon_process import DaemonProcess
from tests.support.judge import History, Sample

MEMORY_MB: Final = 256
THREADS: Final = 48
DESCRIPTORS: Final = 128
READERS: Final = 16


def at_the_end_of_a_life(daemon: DaemonProcess) -> Iterator[Sample]:
    """Looked at from outside: it is about to be killed at a moment that is not to be one of rest."""
    assert daemon.process is not None
    process = Path(f"/proc/{daemon.process.pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    yield Sample(what="memory in MB", value=int(status["VmRSS"].split()[0]) / 1024, limit=MEMORY_MB)
    yield Sample(what="threads", value=int(status["Threads"]), limit=THREADS)
    yield Sample(what="descriptors", value=_descriptors(process / "fd"), limit=DESCRIPTORS)


def _descriptors(directory: Path) -> int:
    """Count without reading the directory where possible: the daemon hides its own from its user (kernel 6.2)."""
    return directory.stat().st_size or sum(1 for _ in directory.iterdir())


def at_the_start_of_a_life(daemon: DaemonProcess) -> Iterator[Sample]:
    """Those whom a kill left behind must not keep the store from using its pages again."""
    yield Sample(what="readers of the store", value=daemon.admin.get("/store")["readers"], limit=READERS)


def most(history: History) -> str:
    """The highest of each kind, for the report."""
    highest: dict[str, float] = {}
    for each in history.of(Sample):
        highest[each.what] = max(each.value, highest.get(each.what, 0))
    return ", ".join(f"{what}: {value:.0f} at most" for what, value in highest.items())
