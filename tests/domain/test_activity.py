"""Current activity of a session."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.domain.ids import TurnId
from hermes.domain.read.activity import Activity, ActivityKind, activity_of
from hermes.domain.session.state import Phase, Session, Turn
from hermes.domain.turn.tool_call import Call, CallState
from tests.support.fakes import a_session

TURN = Turn(id=TurnId("t"), accepted_at=0.0, replies=1)
STARTED = Call(id="c", name="terminal", summary="terminal: ls", state=CallState.STARTED)


@pytest.mark.parametrize(
    ("session", "activity"),
    [
        (a_session("s"), Activity(kind=ActivityKind.NONE)),
        (replace(a_session("s"), queue=(TURN,)), Activity(kind=ActivityKind.QUEUED)),
        (
            replace(a_session("s"), phase=Phase.RUNNING, turn=TURN),
            Activity(kind=ActivityKind.MODEL, step=2),
        ),
        (
            replace(a_session("s"), phase=Phase.RUNNING, turn=replace(TURN, calls=(STARTED,))),
            Activity(kind=ActivityKind.TOOLS, what=("terminal: ls",), step=2),
        ),
        (
            replace(a_session("s"), phase=Phase.RESUME_PENDING, turn=TURN),
            Activity(kind=ActivityKind.INTERRUPTED),
        ),
        (
            replace(a_session("s"), phase=Phase.RUNNING, compressing="the context is full"),
            Activity(kind=ActivityKind.SUMMARY),
        ),
    ],
)
def test_activity_follows_from_the_state(session: Session, activity: Activity) -> None:
    assert activity_of(session) == activity


def test_a_waiting_call_is_an_approval_or_a_question() -> None:
    asked = replace(STARTED, state=CallState.ASKED)
    waits = replace(a_session("s"), phase=Phase.WAITING, turn=replace(TURN, calls=(asked,)))
    assert activity_of(waits).kind is ActivityKind.APPROVAL
    asks = replace(waits, turn=replace(TURN, calls=(replace(asked, name="clarify", question="Which?"),)))
    assert activity_of(asks) == Activity(kind=ActivityKind.QUESTION, what=("Which?",))
