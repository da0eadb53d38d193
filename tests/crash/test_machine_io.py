"""The disk fails, or the daemon is killed, in the middle of the n-th write or sync.

A disk that failed once is not trusted any more: the daemon ends with exit code 74 and says so. Whatever was
acknowledged before is there in the next life, once. `make faults` does it at every single call.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.crash.machine import EVERY, DaemonTalk, injected, start_if_it_can, wait_for_end
from tests.support.daemon_process import DaemonProcess
from tests.support.scripted_model import ScriptedModel

CALLS = ("fdatasync", "fsync", "pwrite64", "writev", "ftruncate")
ERROR, KILL = "error=EIO", "signal=SIGKILL"
MESSAGES = 3
MAX = 200

pytestmark = pytest.mark.timeout(3600 if EVERY else 120)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.mark.parametrize(("call", "number"), [("fdatasync", 1), ("writev", 3)])
def test_a_disk_that_fails_once_ends_the_daemon_and_nothing_acknowledged_is_lost(
    model: ScriptedModel, call: str, number: int
) -> None:
    assert strike(model, call, number, ERROR)


@pytest.mark.parametrize(("call", "number"), [("fdatasync", 3), ("pwrite64", 12), ("writev", 2)])
def test_a_kill_in_the_middle_of_a_write_or_sync_loses_nothing(model: ScriptedModel, call: str, number: int) -> None:
    assert strike(model, call, number, KILL)


@pytest.mark.skipif(not EVERY, reason="takes long; make faults does it")
@pytest.mark.parametrize("fault", [ERROR, KILL])
@pytest.mark.parametrize("call", CALLS)
def test_every_single_write_and_sync_may_be_the_one(model: ScriptedModel, call: str, fault: str) -> None:
    struck = next(number for number in count(1) if number > MAX or not strike(model, call, number, fault)) - 1
    print(f"{call}, {fault}: {struck} calls")
    assert struck


def strike(model: ScriptedModel, call: str, number: int, fault: str) -> bool:
    """A life with that fault in it, from the making of the store on, and one without. Whether it came to the call."""
    daemon = DaemonProcess(config=model.config)
    try:
        talk = DaemonTalk(daemon, model)
        code = live(talk, injected(f"{call}:{fault}:when={number}"))
        if fault == KILL:
            assert code in (None, -9), daemon.stderr()
        elif code is not None:
            assert code in (74, 78), daemon.stderr()  # 78: there was no store yet
            assert "Input/output error" in daemon.stderr()
        daemon.kill()
        daemon.start()
        for each in range(MESSAGES):
            assert talk.say_until_heard(f"say {each}") == str(each)
        talk.check()
        return code is not None
    finally:
        daemon.__exit__(None, None, None)


def live(talk: DaemonTalk, prefix: tuple[str, ...]) -> int | None:
    """Its exit code; None if it was not struck down."""
    if start_if_it_can(talk.daemon, prefix):
        for number in range(MESSAGES):
            answer = talk.say(f"say {number}")
            if answer is None or answer.status != 200:
                assert answer is None or answer.status in (500, 503), answer.body
                break
        else:
            return wait_for_end(talk.daemon, 0)
    return wait_for_end(talk.daemon, 20)
