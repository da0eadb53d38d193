"""Storms of signals: however many come and whenever, it is one orderly stop, and nothing acknowledged is lost."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from hermes.storage.verify import verify
from tests.crash.machine import EVERY, DaemonTalk, pause, wait_for_end
from tests.support.daemon_process import DaemonProcess
from tests.support.model_server import STALL, stream
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

STARTS = 40 if EVERY else 3
TERM, INT, HUP, USR1 = signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1

pytestmark = pytest.mark.timeout(600 if EVERY else 120)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def send(daemon: DaemonProcess, *numbers: signal.Signals, within_s: float = 1.0) -> None:
    """All of them, spread over that time, as far as there is somebody to get them."""
    assert daemon.process is not None
    for number in numbers:
        daemon.process.send_signal(number)  # nothing happens if it has left
        pause(within_s / len(numbers))


@pytest.mark.parametrize(
    "storm",
    [[TERM] * 20, [INT, *[TERM, HUP, USR1] * 7]],
    ids=["SIGTERM", "one SIGINT, and SIGTERM, SIGHUP and SIGUSR1"],
)
def test_a_storm_of_signals_is_one_stop_and_the_turn_goes_on_afterwards(
    model: ScriptedModel, pool: ThreadPoolExecutor, storm: list[signal.Signals]
) -> None:
    model.on_request = lambda body: stream(STALL) if "unfinished" in str(body["messages"][-1]) else None
    with DaemonProcess(config=model.config + "shutdown: {drain_s: 0.5}\n") as daemon:
        talk = DaemonTalk(daemon, model)
        talk.say("say one")
        waiting = pool.submit(talk.say, "say unfinished")
        eventually(lambda: len(model.requests) == 2)
        send(daemon, *storm)
        assert wait_for_end(daemon, 30) == 0
        told = waiting.result(40)
        assert told is None or told.status == 503
        assert daemon.stderr().count("stopping for a ") == 1
        model.on_request = lambda body: None
        daemon.start()
        assert talk.say_until_heard("say unfinished") == "unfinished"
        talk.check()


def test_sigterms_up_to_the_very_end_are_one_stop(model: ScriptedModel) -> None:
    with DaemonProcess(config=model.config) as daemon:
        talk = DaemonTalk(daemon, model)
        talk.say("say one")
        assert daemon.process is not None
        while daemon.process.poll() is None:
            daemon.process.send_signal(TERM)  # without a pause: some come while the handlers are taken back
        assert daemon.process.returncode == 0
        assert daemon.stderr().count("stopping for a ") == 1
        daemon.kill()
        daemon.start()
        talk.check()


def test_many_sighups_reload_and_block_nothing(model: ScriptedModel) -> None:
    with DaemonProcess(config=model.config) as daemon:
        talk = DaemonTalk(daemon, model)
        send(daemon, *[HUP] * 30, within_s=0.3)
        assert talk.say_until_heard("say still here") == "still here"
        eventually(lambda: "configuration reloaded" in daemon.stderr())
        talk.check()


def test_second_sigint_exits_immediately_and_the_turn_continues(
    model: ScriptedModel, pool: ThreadPoolExecutor
) -> None:
    model.on_request = lambda body: stream(STALL)
    with DaemonProcess(config=model.config + "shutdown: {drain_s: 30, timeout_s: 40}\n") as daemon:
        talk = DaemonTalk(daemon, model)
        waiting = pool.submit(talk.say, "say unfinished")
        eventually(lambda: model.requests)
        send(daemon, INT, within_s=0)
        eventually(lambda: "stopping for a " in daemon.stderr())
        send(daemon, TERM, within_s=0)
        began = time.monotonic()
        send(daemon, INT, within_s=0)
        assert wait_for_end(daemon, 30) == 130
        assert time.monotonic() - began < 15, "it did not wait for the turn"
        assert daemon.stderr().splitlines()[-1].startswith("hermes: forced exit by a second Ctrl-C.")
        waiting.result(40)
        model.on_request = lambda body: None
        daemon.start()
        assert talk.say_until_heard("say unfinished") == "unfinished"
        talk.check()


@pytest.mark.parametrize("strikes", [signal.SIGKILL, TERM], ids=lambda each: each.name)
def test_a_signal_while_a_summary_is_made_leaves_the_conversation_whole_and_starts_what_waits(
    model: ScriptedModel, pool: ThreadPoolExecutor, strikes: signal.Signals
) -> None:
    model.on_request = lambda body: stream(STALL) if "You summarise a long" in str(body["messages"][0]) else None
    patient = model.config.replace("idle_timeout_s: 5", "idle_timeout_s: 60, context_window: 8000")
    with DaemonProcess(config=patient + "compression: {floor_tokens: 0}\nshutdown: {drain_s: 0.5}\n") as daemon:
        talk = DaemonTalk(daemon, model)
        for number in range(8):
            talk.say(f"say {number} " + "word " * 200)
        assert daemon.request("POST", "/api/sessions/s/compress", {"topic": "numbers"}).status == 202
        eventually(lambda: "You summarise a long" in str(model.requests[-1]["messages"][0]))
        waiting = pool.submit(talk.say, "say what waits")
        eventually(lambda: daemon.admin.get("/sessions/s")["session"]["queued"])
        send(daemon, strikes, within_s=0)
        assert wait_for_end(daemon, 30) == (0 if strikes == TERM else -strikes)
        waiting.result(40)
        model.on_request = lambda body: None
        daemon.start()
        assert talk.say_until_heard("say what waits") == "what waits"
        talk.check()


def test_a_sigterm_at_any_moment_of_a_start_ends_it_in_order(model: ScriptedModel) -> None:
    """Before the daemon has taken over its signals it ends as any program does, and there is nothing to lose yet."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    with DaemonProcess(config=model.config) as daemon:
        talk = DaemonTalk(daemon, model)
        talk.say("say one")
        daemon.kill()
        for _ in range(STARTS):
            daemon.begin()
            pause(chance.uniform(0.0, 0.8))
            send(daemon, TERM, within_s=0)
            assert wait_for_end(daemon, 30) in (0, -TERM)
            daemon.kill()
        daemon.start()
        talk.check()


def test_a_sigterm_between_the_lock_and_being_ready_leaves_cleanly_and_the_open_turn_goes_on_afterwards(
    model: ScriptedModel, pool: ThreadPoolExecutor
) -> None:
    model.on_request = lambda body: stream(STALL) if "unfinished" in str(body["messages"][-1]) else None
    with DaemonProcess(config=model.config + "shutdown: {drain_s: 0.5}\n") as daemon:
        talk = DaemonTalk(daemon, model)
        talk.say("say one")
        waiting = pool.submit(talk.say, "say unfinished")
        eventually(lambda: len(model.requests) == 2)
        daemon.kill()
        waiting.result(40)
        for point in ("start: locked", "start: store open", "start: actors there", "start: serving"):
            with suppress(AssertionError):  # it need not get as far as being ready
                daemon.start({"HERMES_TEST_CRASH": point, "HERMES_TEST_CRASH_SIGNAL": "TERM"})
            assert wait_for_end(daemon, 30) == 0, point
            assert not (daemon.home / "hermes.sock").exists(), point
            assert verify(daemon.home / "store") == [], point
        assert daemon.stderr().count("stopping for a ") == 4
        model.on_request = lambda body: None
        daemon.start({"HERMES_TEST_CRASH": ""})
        assert talk.say_until_heard("say unfinished") == "unfinished"
        talk.check()
