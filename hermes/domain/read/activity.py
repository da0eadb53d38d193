"""Current activity of a session: what its open turn does. Pure."""

from __future__ import annotations

from enum import StrEnum

from hermes.domain.access.question import open_question, waits_for
from hermes.domain.session.state import Phase, Session
from hermes.domain.turn.tool_call import CallState
from hermes.domain.values import dataclass


class ActivityKind(StrEnum):
    NONE = "none"
    MODEL = "model"  # waits for the model's answer
    TOOLS = "tools"
    SUMMARY = "summary"  # is being compressed
    APPROVAL = "approval"  # waits for the approval of a tool call
    QUESTION = "question"  # waits for the answer of a person
    QUEUED = "queued"  # has messages, but no turn runs
    INTERRUPTED = "interrupted"  # continues later


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    kind: ActivityKind
    what: tuple[str, ...] = ()  # tool calls, or the question
    step: int = 0  # number of the model call in this turn, from 1


def activity_of(session: Session) -> Activity:
    if session.compressing:
        return Activity(kind=ActivityKind.SUMMARY)
    if (asked := open_question(session)) is not None:
        kind = ActivityKind.APPROVAL if asked.approval else ActivityKind.QUESTION
        return Activity(kind=kind, what=(waits_for(session),))
    if session.phase is Phase.RESUME_PENDING:
        return Activity(kind=ActivityKind.INTERRUPTED)
    turn = session.turn
    if turn is None or session.phase is not Phase.RUNNING:
        return Activity(kind=ActivityKind.QUEUED if session.queue else ActivityKind.NONE)
    calls = tuple(call.summary or call.name for call in turn.calls if call.state is CallState.STARTED)
    return Activity(kind=ActivityKind.TOOLS if calls else ActivityKind.MODEL, what=calls, step=turn.replies + 1)
