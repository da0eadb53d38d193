"""Changes of a session's state by the model's answers and the records of tool calls."""

from __future__ import annotations

from collections.abc import Callable

from hermes.domain.access.question import FOR_THE_SESSION
from hermes.domain.child.review_topic import SKILL_TOOLS
from hermes.domain.history.message_chain import MAX_SAID, joined, text_and_calls
from hermes.domain.records import Answered, Asked, ChildStarted, InnerCalled, ModelReplied, ToolFinished, ToolStarted
from hermes.domain.session.state import Phase, Session, Turn
from hermes.domain.session.turn_role import answered_by, who_wants, with_words_of
from hermes.domain.turn.tool_call import Approval, Call, CallState, Gate, InnerOutcome, Verdict
from hermes.domain.values import replace


def model_replied(session: Session, record: ModelReplied) -> Session:
    assert session.turn is not None
    turn = session.turn
    turn = replace(
        turn,
        replies=turn.replies + 1,
        calls=record.calls,
        usage=turn.usage + record.usage,
        written="",
        said=_said(turn, record),
        handing=record.handed,
        handing_message=record.handed_message,
        handing_model=record.model if record.handed else "",
    )
    return replace(
        session,
        turn=turn,
        messages=session.messages + 1,
        usage=session.usage + record.usage,
        context_tokens=record.context_tokens,
    )


def _said(turn: Turn, record: ModelReplied) -> str:
    """Return the text of the turn so far, for the chain of its client's history."""
    if not turn.chain or len(turn.said) > MAX_SAID:
        return turn.said
    return joined(turn.said, text_and_calls(record.message)[0])


def tool_started(session: Session, record: ToolStarted) -> Session:
    return _with_call(session, record.call, lambda call: replace(call, state=CallState.STARTED))


def inner_called(session: Session, record: InnerCalled) -> Session:
    """Add the call right after that of its script."""
    calls = session.turn.calls if session.turn else ()
    added = (each for call in calls for each in ((call, record.call) if call.id == record.call.within else (call,)))
    return with_calls(session, tuple(added))


def _inner_finished(session: Session, record: ToolFinished) -> Session:
    """Move a call of a script from the open ones to what its script has done."""
    calls = session.turn.calls if session.turn else ()
    summary = next((call.summary or call.name for call in calls if call.id == record.call), record.name)
    done = InnerOutcome(summary=summary, outcome=record.outcome)
    left = (
        replace(call, inner=(*call.inner, done)) if call.id == record.within else call
        for call in calls
        if call.id != record.call
    )
    return replace(with_calls(session, tuple(left)), unreviewed_calls=session.unreviewed_calls + 1)


def tool_finished(session: Session, record: ToolFinished) -> Session:
    if record.within:
        return _inner_finished(session, record)
    calls = session.turn.calls if session.turn else ()
    left = tuple(call for call in calls if call.id != record.call)
    handed = tuple(call for call in session.handed if call.id != record.call)
    unreviewed = 0 if record.name in SKILL_TOOLS else session.unreviewed_calls + 1
    return replace(
        with_calls(session, left),
        messages=session.messages + 1,
        handed=handed,
        unreviewed_calls=unreviewed,
        delegated=session.delegated + record.spent,
    )


def asked(session: Session, record: Asked) -> Session:
    return _with_call(session, record.call, lambda call: _asked_call(call, record))


def _asked_call(call: Call, record: Asked) -> Call:
    """Mark a call as asked. Nothing is granted for longer than its choices offer."""
    once = call.gate.once or FOR_THE_SESSION[0] not in record.choices
    return replace(
        call,
        state=CallState.ASKED,
        choices=record.choices,
        gate=replace(call.gate, once=once),
        routed=record.routed,
        asked_in=record.asked_in,
        cut=record.cut,
    )


def answered(session: Session, record: Answered) -> Session:
    """Let the call continue, keep a grant for the session, and count the answer as activity."""
    calls = session.turn.calls if session.turn else ()
    rules = tuple(rule for call in calls if call.id == record.call and not call.gate.once for rule in call.gate.rules)
    granted = rules if record.answer == Approval.SESSION else ()  # ALWAYS is stored as a fact
    after = _with_call(
        session,
        record.call,
        lambda call: replace(
            call, state=CallState.PROPOSED, gate=_opened(call.gate), question="", approved_by=answered_by(record)
        ),
    )
    if after.turn is not None and any(call.id == record.call and call.question for call in calls):
        after = replace(after, turn=with_words_of(after.turn, record.role, record.by))  # the model reads the answer
    grants = tuple(dict.fromkeys((*session.grants, *granted)))
    return replace(after, grants=grants, active_at=record.at)


def _opened(gate: Gate) -> Gate:
    """Return the gate opened. Its rules stay: they are what was allowed."""
    return replace(gate, verdict=Verdict.ALLOW)


def _with_call(session: Session, name: str, change: Callable[[Call], Call]) -> Session:
    calls = session.turn.calls if session.turn else ()
    return with_calls(session, tuple(change(call) if call.id == name else call for call in calls))


def with_child(turn: Turn | None, record: ChildStarted) -> Turn | None:
    """Return the turn, in which the call that waits for the child names it."""
    if turn is None or not record.call:
        return turn
    calls = (
        replace(call, children=(*call.children, record.child)) if call.id == record.call else call
        for call in turn.calls
    )
    return replace(turn, calls=tuple(calls))


def with_calls(session: Session, calls: tuple[Call, ...]) -> Session:
    return session if session.turn is None else replace(session, turn=replace(session.turn, calls=calls))


def with_phase_of_calls(session: Session) -> Session:
    """Derive the phase from the calls: a turn waits while one of its calls waits for a person."""
    if session.turn is None or session.phase not in (Phase.RUNNING, Phase.WAITING):
        return session
    waiting = next((call for call in session.turn.calls if call.state is CallState.ASKED), None)
    if waiting is not None:
        return replace(session, phase=Phase.WAITING, reason=_waits_for(waiting, session.turn))
    if session.phase == Phase.WAITING:
        return replace(session, phase=Phase.RUNNING, reason="a turn is in flight")
    return session


def _waits_for(call: Call, turn: Turn) -> str:
    if call.question:
        return f"it asked: {call.question}"
    needs = f"{call.name} needs permission: {call.gate.reason}"
    return f"{needs}; {who_wants(turn)} waits for the owner's approval" if call.routed else needs
