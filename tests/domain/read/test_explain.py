"""Why a session is as it is, and what whoever asks can do about it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.domain.ids import TurnId
from hermes.domain.read.explain import explain, last_problem
from hermes.domain.session.state import Phase, Turn
from hermes.domain.turn.tool_call import CallState
from hermes.domain.turn.turn_failure import Failure, FailureKind
from tests.adapters.a_call import a_call, waiting
from tests.support.fakes import a_session

NOW = 2_000_000_000.0


def test_a_session_that_waits_says_how_to_let_it_go_on() -> None:
    permission = waiting(a_session("s"), "t1")
    assert "\nTo let it go on: `hermes approve s` or `hermes deny s`. `hermes approve s show` " in explain(
        permission, NOW
    )
    question = waiting(a_session("s"), "t1", a_call(question="Which?", choices=("a", "b")))
    assert "\nTo let it go on: `hermes answer s TEXT` (a, b).\n" in explain(question, NOW)
    assert "To let it go on" not in explain(a_session("s"), NOW)
    assert "hermes answer s TEXT`.\n" in explain(waiting(a_session("s"), "t1", a_call(question="Why?")), NOW)


def test_command_that_waits_for_permission_is_shown_and_cut() -> None:
    assert "\nIt wants to run: rm -rf x\n" in explain(waiting(a_session("s"), "t1"), NOW)
    long = waiting(a_session("s"), "t1", a_call(whole="echo a\n" + "b" * 500))
    shown = next(line for line in explain(long, NOW).splitlines() if line.startswith("It wants"))
    assert shown == "It wants to run: echo a " + "b" * 193 + "…"


def test_a_question_ends_as_it_was_asked() -> None:
    asks = waiting(a_session("s", reason="it asked: Which?"), "t1", a_call(question="Which?"))
    assert ": it asked: Which?\n" in explain(asks, NOW)
    permits = waiting(a_session("s", reason="terminal needs permission: it deletes"), "t1")
    assert ": it deletes.\n" in explain(permits, NOW)


def test_how_long_it_has_been_so_is_said_in_a_sentence() -> None:
    for phase, words in (
        (Phase.IDLE, "has been idle since"),
        (Phase.RUNNING, "has been running since"),
        (Phase.SUSPENDED, "has been suspended since"),
    ):
        assert f"Session s {words} " in explain(a_session("s", phase=phase), NOW)


def test_a_session_that_runs_says_what_it_is_doing() -> None:
    turn = Turn(id=TurnId("t1"), accepted_at=NOW, replies=2)
    thinks = a_session("s", phase=Phase.RUNNING, reason="a turn is in flight", turn=turn)
    assert ": turn t1 waits for the model's answer number 3.\n" in explain(thinks, NOW)
    again = replace(thinks, turn=replace(turn, attempt=2))
    assert ": turn t1 (attempt 2) waits for the model's answer number 3.\n" in explain(again, NOW)
    calls = (a_call(state=CallState.STARTED, summary="terminal: make all"), a_call(state=CallState.PROPOSED))
    acts = replace(thinks, turn=replace(turn, calls=calls), resume_reason="restart: new version")
    assert ": turn t1 runs terminal: make all; a stop was announced (restart: new version).\n" in explain(acts, NOW)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("stopped: by Ctrl-C", "The last turn was stopped: by Ctrl-C."),
        ("the session ended: asked for", "The last turn was stopped: the session ended: asked for."),
    ],
)
def test_what_became_of_the_last_turn_is_a_sentence(message: str, said: str) -> None:
    failure = Failure(kind=FailureKind.CANCELLED, message=message)
    assert said in explain(a_session("s", last_failure=failure), NOW)


def test_a_turn_that_was_stopped_is_no_problem_of_its_session() -> None:
    failed = Failure(kind=FailureKind.AUTH, message="check the key")
    assert last_problem(a_session("s", last_failure=failed)) == "The last turn failed (auth): check the key"
    stopped = Failure(kind=FailureKind.CANCELLED, message="stopped: by Ctrl-C")
    assert last_problem(a_session("s", last_failure=stopped)) == last_problem(a_session("s")) == ""


def test_without_a_daemon_an_open_turn_says_why_it_was_interrupted() -> None:
    turn = Turn(id=TurnId("t1"), accepted_at=NOW)
    open_turn = a_session("s", phase=Phase.RUNNING, turn=turn, resume_reason="shutdown: asked to stop by SIGTERM")
    assert "shutdown: asked to stop by SIGTERM" in explain(open_turn, NOW, alive=False)
    assert "no daemon runs" in explain(replace(open_turn, resume_reason=""), NOW, alive=False)
