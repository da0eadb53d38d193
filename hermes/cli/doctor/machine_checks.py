"""Checks of the machine: versions, clock, disk space and sandbox."""

from __future__ import annotations

import platform
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hermes import __version__
from hermes.cli.doctor.finding import CheckResult, Subject, failed, ok, skipped, warning
from hermes.cli.output import duration, size
from hermes.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

OLDEST_PYTHON = (3, 11)
MIN_FREE_BYTES = 100 << 20
FREE_BYTES = 1 << 30
_AHEAD_S = 120.0  # a file or message from the future by more than this: the clock went back
_RELEASED_AT = 1_760_000_000.0  # no correct clock is before this


def check_versions(_subject: Subject) -> Iterator[CheckResult]:
    yield ok("hermes.version", f"Hermes {__version__} in {Path(__file__).parents[2]}.")
    yield python_finding(sys.version_info[:3], sys.executable)


def python_finding(version: tuple[int, ...], executable: str) -> CheckResult:
    found = f"Python {'.'.join(map(str, version))} ({executable})"
    if version[:2] < OLDEST_PYTHON:
        return failed("python.version", f"{found} is too old.", "Install Hermes with Python 3.11 or newer.")
    return ok("python.version", f"{found}.")


def check_clock(subject: Subject) -> Iterator[CheckResult]:
    data = subject.home.store_dir / "data.mdb"
    yield clock_finding(time.time(), data.stat().st_mtime if data.exists() else 0.0)


def clock_finding(now: float, last_write_at: float) -> CheckResult:
    """Judge the clock by the last write of the store."""
    remedy = "Set the clock, for example with `timedatectl set-ntp true`."
    if now < _RELEASED_AT:
        return failed("machine.clock", f"The clock is wrong: it shows {_date(now)}.", remedy)
    if last_write_at - now > _AHEAD_S:
        late = duration(last_write_at - now)
        return failed("machine.clock", f"The clock is {late} behind the last write of the store.", remedy)
    return ok("machine.clock", f"The clock shows {_date(now)}.")


def _date(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(at))


def check_disk(subject: Subject) -> Iterator[CheckResult]:
    place = subject.home.data_dir
    while not place.exists():
        place = place.parent
    yield disk_finding(shutil.disk_usage(place).free, str(subject.home.data_dir))


def disk_finding(free_bytes: int, where: str) -> CheckResult:
    text = f"{size(free_bytes)} are free for {where}."
    remedy = "Free some disk space, or move the home (HERMES_HOME) to a larger disk."
    if free_bytes < MIN_FREE_BYTES:
        return failed("machine.disk", text, remedy)
    return warning("machine.disk", text, remedy) if free_bytes < FREE_BYTES else ok("machine.disk", text)


def check_sandbox(subject: Subject) -> Iterator[CheckResult]:
    from hermes.app.factories.sandbox import probe_sandbox, sandbox_text

    if subject.config is None:
        yield skipped("sandbox.bubblewrap", "Not checked: the configuration is not valid.")
        return
    try:
        sandbox = probe_sandbox(subject.config, subject.home)
    except ConfigError as error:
        yield failed("sandbox.bubblewrap", f"{error}.", "Correct sandbox.user with `hermes config set`.")
        return
    text = f"The sandbox is {sandbox_text(sandbox)}."
    if sandbox.works:
        yield ok("sandbox.bubblewrap", text)
    elif subject.config.sandbox.mode == "off" or platform.system() != "Linux":
        yield warning("sandbox.bubblewrap", text, f"{sandbox.probe.remedy.capitalize()}.")
    else:
        yield failed("sandbox.bubblewrap", text, f"{sandbox.probe.remedy[:1].upper()}{sandbox.probe.remedy[1:]}.")
