"""`kill -9` at random moments while many people chat: nothing that was taken is lost, no message becomes two turns,
and no answer is shown twice without a word of warning.

Each person says something, waits for the answer, and says the next thing; a turn now and then runs a tool. The
platform delivers again whatever was not confirmed.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import pytest

from hermes.domain.errors import HermesError
from tests.crash import figures
from tests.crash.people import PLATFORMS, SECRETS, People, unmarked
from tests.crash.survey import survey
from tests.support.daemon_process import DaemonProcess
from tests.support.judge import (
    Accepted,
    Acknowledged,
    Crashed,
    Delivered,
    Effect,
    History,
    ReplyExpected,
    Sent,
    Settled,
    judge,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

KILLS = int(os.environ.get("HERMES_TEST_CHAT_KILLS", "6"))  # through each platform
PEOPLE = int(os.environ.get("HERMES_TEST_PEOPLE", "10"))
SEED = int(os.environ.get("HERMES_TEST_SEED", "0")) or random.SystemRandom().randrange(1 << 32)

pytestmark = pytest.mark.timeout(180 + 10 * KILLS)


class Person(threading.Thread):
    def __init__(self, number: int, platform: People, ran: Path) -> None:
        super().__init__(name=f"person {number}", daemon=True)
        self.chat = number
        self.sent: list[tuple[str, float]] = []
        self._platform = platform
        self._ran = ran
        self._chance = random.Random(f"{SEED}-{number}")
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.is_set():
            number = len(self.sent) + 1
            word = f"w{self.chat}-{number}"
            text = f"run echo {word} >> {self._ran}; echo {word}" if self._chance.random() < 0.3 else f"say {word}"
            self.sent.append((text, time.monotonic()))
            self._platform.say(self.chat, text)
            deadline = time.monotonic() + self._chance.uniform(1, 6)
            while time.monotonic() < deadline and not self._answered(word):
                if self.done.wait(0.05):
                    return

    def _answered(self, word: str) -> bool:
        return any(word in text for text in self._platform.replies(self.chat))


@pytest.mark.parametrize("name", ["telegram", "slack"])
def test_kills_at_random_moments_lose_and_double_nothing_in_chats(name: str, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    print(f"seed {SEED}, {KILLS} kills through {name}")
    history = History(surveyed=True)
    ran = tmp_path / "ran"
    with ScriptedModel() as model, PLATFORMS[name]() as platform:
        config = model.config + platform.config + "agent: {busy_input_mode: queue}\n"
        with DaemonProcess(config=config, environ=SECRETS) as daemon:
            people = [Person(number, platform, ran) for number in range(1, PEOPLE + 1)]
            for person in people:
                person.start()
            for _ in range(KILLS):
                time.sleep(chance.uniform(0.3, 4.0))
                history.add(*figures.at_the_end_of_a_life(daemon))
                daemon.kill()
                history.add(Crashed(at=time.monotonic()))
                daemon.start()
                history.add(*figures.at_the_start_of_a_life(daemon))
            time.sleep(1)
            for person in people:
                person.done.set()
                person.join(20)
            _let_finish(daemon, platform)
            daemon.terminate()
            history.add(*survey(daemon.home))
        for person in people:
            _take_down(history, person, platform)
        history.add(*(Effect(call=line) for line in (ran.read_text().split() if ran.exists() else ())))
        problems = [str(each) for each in judge(history)]
        assert platform.violations == []
    answered = sum(len(person.sent) for person in people)
    marked = sum(each.marked for each in history.of(Delivered))
    print(f"random kills: {KILLS} through {name}, {answered} messages, {marked} marked as possible repeats")
    print(f"random kills: {figures.most(history)}")
    assert marked <= (KILLS if platform.may_repeat else 0)
    assert answered > KILLS, "the load was too light to prove anything"
    assert problems == []


def _let_finish(daemon: DaemonProcess, platform: People) -> None:
    """Everything is confirmed, every session at rest, everything said. What was suspended is resumed first."""
    platform.until(lambda: not platform.unconfirmed, within_s=60)

    def at_rest() -> bool:
        sessions = daemon.admin.get("/api/sessions?limit=200")["sessions"]
        for session in sessions:
            if session["phase"] == "suspended" and (session["running_turn"] or session["queued"]):
                with suppress(HermesError):
                    daemon.admin.post(f"/sessions/{session['id']}/resume", {"reason": "the test looks"})
        busy = [each for each in sessions if each["running_turn"] or each["queued"]]
        return not busy and daemon.admin.get("/store")["outbox"] == 0

    eventually(at_rest, within_s=90)


def _take_down(history: History, person: Person, platform: People) -> None:
    turns = {each.inbound: each.turn for each in history.of(Accepted)}
    texts = {each.turn: each.text for each in history.of(Settled) if not each.failure}
    shown = platform.replies(person.chat)
    to = f"chat {person.chat}"
    same: dict[str, list[str]] = defaultdict(list)  # turns by their answer: "no recorded outcome" is said of several
    for text, at in person.sent:
        history.add(Sent(inbound=text, at=at), Acknowledged(inbound=text, at=time.monotonic()))
        turn = turns.get(text, "")
        history.add(ReplyExpected(to=to, turn=turn))
        same[texts.get(turn, "?")].append(turn)
    for said, its_turns in same.items():
        plain = [reply for reply in shown if reply == said]
        marked = [reply for reply in shown if reply != said and unmarked(reply) == said]
        for number, _ in enumerate(plain):
            turn = its_turns[min(number, len(its_turns) - 1)]
            history.add(Delivered(to=to, turn=turn, text=said))
        for number, _ in enumerate(marked):  # of those that have no other first
            turn = its_turns[-1 - number % len(its_turns)]
            history.add(Delivered(to=to, turn=turn, text=said, marked=True))
