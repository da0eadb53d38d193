"""What every test can rely on: no secrets or texts in logs, and nothing blocks the loop unnoticed."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import HealthCheck, settings
from loguru import logger

for variable in [name for name in os.environ if name.startswith("HERMES_") and not name.startswith("HERMES_TEST_")]:
    del os.environ[variable]  # a home or port of the person who runs the tests is none of theirs

# A background job of a script (`nohup make test &`) starts with these ignored, and every child would inherit that.
for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

# How long a generated case takes says more about the machine. Where a bound matters, a test has its own.
usual = settings.get_profile(settings.get_current_profile_name())
settings.register_profile("patient", usual, deadline=None, suppress_health_check=(HealthCheck.too_slow,))
settings.load_profile("patient")


# Directories whose tests start no process. A test there that does is marked `system` by itself.
UNIT = frozenset(
    {
        "actors",
        "agent",
        "config",
        "domain",
        "media",
        "ports",
        "search",
        "services",
        "shell_policy",
        "supervision",
        "tui",
    }
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.get_closest_marker("system") is None:
            unit = item.path.is_relative_to(here) and item.path.relative_to(here).parts[0] in UNIT
            item.add_marker(pytest.mark.unit if unit else pytest.mark.system)


@pytest.fixture(autouse=True, scope="session")
def plain_logs() -> None:
    logger.remove()
    logger.add(sys.stderr, level="WARNING", backtrace=False, diagnose=False)


@pytest.fixture
def logs_of_its_own() -> Iterator[None]:
    """For a test that configures the logs of this process as a daemon does."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers = []  # so that pytest's own are not closed by the new configuration
    yield
    logger.remove()
    logger.configure(patcher=lambda record: None)
    logger.add(sys.stderr, level="WARNING", backtrace=False, diagnose=False)
    root.handlers, root.level = handlers, level


@pytest.fixture(autouse=True)
def nothing_blocks_the_loop() -> Iterator[BlockBuster]:
    """A blocking call of ours on the event loop fails the test that made it."""
    with blockbuster_ctx("hermes") as guard:
        # Formatting a traceback for the log looks for its files; only failures do that.
        guard.functions["os.path.abspath"].can_block_in("loguru/_better_exceptions.py", "_is_file_mine")
        yield guard


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files and directories that were synced to disk, in order."""
    paths: list[Path] = []
    fsync = os.fsync

    def recorded(descriptor: int) -> None:
        fsync(descriptor)
        paths.append(Path(f"/proc/self/fd/{descriptor}").readlink())

    monkeypatch.setattr(os, "fsync", recorded)
    return paths
