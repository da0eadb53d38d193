"""What only Linux has is not needed elsewhere. Only parts: no other system runs these tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from hermes.cli.pid import has_ended, watch_process
from hermes.processes import identity
from hermes.processes.shim import command


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((os, "pidfd_open"), (os, "waitid"), (signal, "pidfd_send_signal")):
        monkeypatch.delattr(module, name)


def test_the_end_of_a_process_is_seen_without_a_descriptor(sleeper: subprocess.Popen[bytes]) -> None:
    with watch_process(sleeper.pid) as process:
        assert process is not None
        assert not has_ended(process)
        sleeper.kill()
        sleeper.wait(30)
        assert has_ended(process)
    with watch_process(sleeper.pid) as gone:
        assert gone is None
    with watch_process(None) as nobody:
        assert has_ended(nobody)


def test_a_child_is_known_to_run_or_not(sleeper: subprocess.Popen[bytes]) -> None:
    assert identity._is_running_child(sleeper.pid)
    sleeper.kill()
    sleeper.wait(30)
    assert not identity._is_running_child(sleeper.pid)


@pytest.mark.parametrize(
    ("script", "end"), [("raise SystemExit(7)", (7, None)), ("os.kill(os.getpid(), 9)", (None, 9))]
)
def test_a_shim_learns_how_its_command_ended(script: str, end: tuple[int | None, int | None]) -> None:
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", f"import os; {script}"], os.environ)
    deadline = time.monotonic() + 30
    while (found := command._how_it_ended(pid)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert found == end
