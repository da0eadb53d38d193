"""Hypothesis decides what happens to a simulated daemon, and a simple model says what must be true at every moment.

The model is a dictionary: what was acknowledged, and as which turn. After each step every entry is on disk under that
turn and under no other, however often the daemon was killed in between; each row is the fold of its log; nothing with
effects ran twice. In the end faults go off, everything drains, and the judge has the last word. Unlike a seed, a
failure here is shrunk to the few steps that it takes.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from loguru import logger

from hermes.domain.ids import InboundKey, TurnId
from tests.simulation.disk import Disk
from tests.simulation.people import API, Conversation, Message
from tests.simulation.run import MOMENTS, Simulation
from tests.simulation.survey import survey
from tests.support.judge import Accepted, Acknowledged, Effect, History, Stored, judge

EXAMPLES = int(os.environ.get("HERMES_TEST_EXAMPLES", "100"))
WISHES = ("stop", "end", "compress", "suspend", "resume", "answer", "undo", "retry", "branch")
PAUSES_S = st.sampled_from([0.0, 0.001, 0.01, 0.3, 2.0, 30.0])


class DaemonLife(RuleBasedStateMachine):
    simulation: Simulation

    @initialize(seed=st.integers(0, 1000))
    def begin(self, seed: int) -> None:
        logger.disable("hermes")
        self.simulation = Simulation(seed, Disk)
        self.outside = self.simulation.outside
        self.places = [Conversation(number) for number in range(2)]
        self.messages: list[Message] = []
        self.simulation.start()

    # ------------------------------------------------------------ what people do

    @rule(place=st.integers(0, 1), pause_s=PAUSES_S)
    def say(self, place: int, pause_s: float) -> None:
        message = Message(self.simulation.town, self.outside, self.places[place])
        self.messages.append(message)
        message.send()
        self.wait(pause_s)

    @precondition(lambda self: self.messages)
    @rule(data=st.data(), pause_s=PAUSES_S)
    def say_the_same_again(self, data: st.DataObject, pause_s: float) -> None:
        data.draw(st.sampled_from(self.messages)).ask()
        self.wait(pause_s)

    @rule(place=st.integers(0, 1), wish=st.sampled_from(WISHES))
    def wish(self, place: int, wish: str) -> None:
        session = self.places[place].last
        if session is None:
            return

        def work(daemon: Any, _: object) -> Any:
            desk = daemon.desk
            match wish:
                case "stop":
                    return desk.stop_turn(session, "a wish")
                case "answer":
                    return desk.answer(session, "once", API)
                case "compress" | "undo" | "branch":
                    return getattr(desk, wish)(session)
                case "retry":
                    return desk.retry(session, TurnId(self.outside.number("turn")), API)
                case _:
                    return getattr(desk, wish)(session, "a wish")

        self.simulation.town.ask(work, lambda *_: None)
        self.wait(0.1)

    # ------------------------------------------------------------ what goes wrong

    @rule(pause_s=PAUSES_S)
    def wait(self, pause_s: float) -> None:
        self.outside.run_until(self.outside.now + pause_s)

    @rule()
    def kill(self) -> None:
        self.outside.kill()

    @rule(moment=st.sampled_from(MOMENTS))
    def kill_exactly(self, moment: str) -> None:
        self.outside.kill_at = moment

    @rule(pause_s=PAUSES_S)
    def stop(self, pause_s: float) -> None:
        self.simulation.stop("somebody asked for it")
        self.wait(pause_s)

    @rule(fault=st.sampled_from(["full", "slow", "broken"]), pause_s=PAUSES_S)
    def spoil_the_disk(self, fault: str, pause_s: float) -> None:
        setattr(self.outside.disk, fault, True)
        self.wait(pause_s)

    @rule()
    def heal_the_disk(self) -> None:
        self.outside.disk.heal()

    @rule(by_s=st.sampled_from([-86400.0, -60.0, 60.0, 7200.0, 86400.0]))
    def set_the_clock(self, by_s: float) -> None:
        self.outside.set_by += by_s

    # ------------------------------------------------------------ what must be true

    @invariant()
    def what_was_acknowledged_is_on_disk(self) -> None:
        model = {each.inbound: each.turn for each in self.outside.history.of(Acknowledged)}
        found = list(survey(self.outside.disk))
        accepted = [(each.inbound, each.turn) for each in found if isinstance(each, Accepted)]
        assert len(accepted) == len({inbound for inbound, _ in accepted})
        assert model.items() <= dict(accepted).items()
        for inbound, turn in accepted:
            seen = self.outside.disk.seen(InboundKey(inbound))
            assert seen is not None
            assert seen.turn == turn

    @invariant()
    def the_log_gives_the_row_and_effects_happen_once(self) -> None:
        stored = [each for each in survey(self.outside.disk) if isinstance(each, Stored)]
        assert judge(History([*stored, *self.outside.history.of(Effect)])) == []

    def teardown(self) -> None:
        self.simulation.finish()
        logger.enable("hermes")
        assert judge(self.outside.history) == []


class TestDaemonLife(DaemonLife.TestCase):  # type: ignore[misc,valid-type]
    settings = settings(max_examples=EXAMPLES, stateful_step_count=30, deadline=None)
