"""Tool calls of a turn: their start, their questions and their outcomes.

Calls run in the order the model gave them; those that are safe beside each other run together. A call is closed by
exactly one outcome before the model is asked again: its own, or one that names the cause.
"""

from __future__ import annotations

from hermes.domain.access.permission import grants_for, is_routed, is_unasked, may_answer, needs_approver, rules_of
from hermes.domain.access.question import (
    APPROVALS,
    CUT,
    FOR_THE_SESSION,
    ONLY_ONCE,
    SHOW,
    asked_by,
    is_long,
    waiting_call,
)
from hermes.domain.access.role import Role
from hermes.domain.cause.cause import InterruptionCause, StopCause
from hermes.domain.child import delegation
from hermes.domain.events import CallAnswered, CallAsked, CallBegan, CallEnded, Steered
from hermes.domain.ids import TurnId
from hermes.domain.records import Answered, Asked, Merged, ToolFinished, ToolStarted
from hermes.domain.session import note, turn_end
from hermes.domain.session.builder import encode, publishing, refuse, refuse_with, then
from hermes.domain.session.jobs import ToolReport
from hermes.domain.session.protocol import Answer, EndInside, Step, TurnLimits
from hermes.domain.session.state import Phase, Session
from hermes.domain.session.turn_role import role_of_turn
from hermes.domain.source import Source
from hermes.domain.turn.judgement import is_approved
from hermes.domain.turn.tool_call import Approval, Call, CallOutcome, CallState, Verdict
from hermes.domain.values import replace

_YES = {"yes", "y", "ok", "okay", "approve", "approved", "once", "👍"}
_NO = {"no", "n", "deny", "denied", "cancel", "👎"}
_ALL_OF_IT = {SHOW, "show all", "show it"}
ONCE_ONLY = "this can be allowed once only: answer once or deny"
NOT_SEEN = f"only the beginning of what would run was shown: see all of it first, with {SHOW} or /approve {SHOW}"


def advance(before: Step, now: float, limits: TurnLimits) -> Step:
    """Start the calls that can start and ask for approvals. Without open calls, the model continues."""
    while (turn := before.session.turn) is not None and turn.calls:
        if before.session.phase != Phase.RUNNING:
            return before  # it was suspended: no further call begins
        call = next((call for call in turn.calls if call.state is not CallState.STARTED), None)
        if call is None or call.state is CallState.ASKED:
            return before
        # The call of a script runs beside that of its script.
        started = [each for each in turn.calls if each.state is CallState.STARTED and each.id != call.within]
        if refusal := _refusal(call, before.session, limits):
            before = close(before, call, *refusal, now)
        elif _must_ask(call, before.session, limits):
            return before if started else _ask(before, call, now, limits)
        elif started and not _fits_beside(call, started, limits):
            return before
        else:
            before = _run(before, call, now)
    return _hand_over(_steer(before, now), now)


def _hand_over(before: Step, now: float) -> Step:
    """End the turn with the calls that the client runs, once every other call has its outcome."""
    turn = before.session.turn
    if turn is None or not turn.handing or before.session.phase != Phase.RUNNING:
        return before
    return turn_end.hand_over(before, turn, now)


def _fits_beside(call: Call, started: list[Call], limits: TurnLimits) -> bool:
    return call.parallel and all(other.parallel for other in started) and len(started) < limits.max_parallel


def _refusal(call: Call, session: Session, limits: TurnLimits) -> tuple[CallOutcome, str] | None:
    if call.problem:
        return CallOutcome.ERROR, call.problem
    if call.gate.verdict is Verdict.BLOCK:
        return CallOutcome.DENIED, note.blocked(call.gate.reason)
    if session.assignment is not None and not session.assignment.asks and _must_ask(call, session, limits):
        return CallOutcome.DENIED, note.NOBODY_TO_ASK
    return None


def _must_ask(call: Call, session: Session, limits: TurnLimits) -> bool:
    if call.question:
        return True
    role, rules = role_of_turn(session), set(call.gate.rules)
    for_longer = rules and not call.gate.once and rules <= grants_for(role, limits.granted, session.grants)
    granted = is_unasked(role, yolo=session.preferences.yolo) or for_longer
    granted = granted or is_approved(call, role, child=session.assignment is not None)
    return call.gate.verdict is Verdict.ASK and not granted


def _run(before: Step, call: Call, now: float) -> Step:
    turn = before.session.turn
    assert turn is not None
    after = then(before, ToolStarted(at=now, turn=turn.id, call=call.id), *delegation.started(before, call, now))
    began = CallBegan(session=after.session.id, turn=turn.id, call=call.id, name=call.name, summary=call.summary)
    return publishing(after, began)


def _ask(before: Step, call: Call, now: float, limits: TurnLimits) -> Step:
    turn = before.session.turn
    assert turn is not None
    role = role_of_turn(before.session)
    if role is Role.GUEST:
        call = replace(call, gate=replace(call.gate, once=True))
    routed = is_routed(role, rules_of(call))
    call = replace(call, routed=routed, asked_in=limits.approvers if routed else ())
    assignment = before.session.assignment
    if not routed and assignment is not None and assignment.asked_in is not None:  # its parent's person is asked
        call = replace(call, routed=True, asked_in=(assignment.asked_in,))
    in_chat = turn.place is not None or bool(call.asked_in)
    if in_chat and is_long(call):
        call = replace(call, choices=CUT, cut=True)
    return _put(before, call, now)


def show_whole(before: Step, call: Call, now: float) -> Step:
    """Ask again with the whole command; from now on it can be approved once."""
    if not call.cut:
        return before
    return _put(before, replace(call, choices=ONLY_ONCE, cut=False), now, file=call.whole_file)


def _put(before: Step, call: Call, now: float, *, file: str = "") -> Step:
    turn = before.session.turn
    assert turn is not None
    question = asked_by(call, turn.id, brief=call.cut or bool(file))
    asked = Asked(
        at=now,
        turn=turn.id,
        call=call.id,
        question=question.text,
        choices=question.choices,
        routed=call.routed,
        asked_in=call.asked_in,
        cut=call.cut,
        file=file,
    )
    event = CallAsked(
        session=before.session.id,
        turn=turn.id,
        call=call.id,
        name=call.name,
        question=question.text,
        choices=question.choices,
        approval=question.approval,
        summary=call.summary,
    )
    return publishing(then(before, asked), event)


def _steer(before: Step, now: float) -> Step:
    """Merge steering messages into the turn, once every call has its outcome."""
    turn = before.session.turn
    if turn is None or before.session.phase != Phase.RUNNING:
        return before
    for waiting in before.session.queue:
        if waiting.steer:
            before = then(before, Merged(at=now, turn=waiting.id, into=turn.id))
            before = publishing(before, Steered(session=before.session.id, turn=turn.id, message=waiting.id))
    return before


def close(before: Step, call: Call, outcome: CallOutcome, text: str, now: float) -> Step:
    """Close a call that has not run, or whose outcome is unknown."""
    turn = before.session.turn
    assert turn is not None
    message = encode(role="tool", tool_call_id=call.id, content=text)
    finished = ToolFinished(
        at=now,
        turn=turn.id,
        call=call.id,
        message=message,
        outcome=outcome,
        name=call.name,
        within=call.within,
    )
    return _finish(before, finished, call.summary)


def close_all(before: Step, outcome: CallOutcome, cause: InterruptionCause | StopCause, now: float) -> Step:
    """Close calls that have started with `outcome`, and the others as not run."""
    before = close_inner(before, outcome, cause, now)
    for call in before.session.turn.calls if before.session.turn else ():
        began = call.state is CallState.STARTED
        text = note.no_outcome(cause, call.inner) if began else note.not_run(cause)
        before = close(before, call, outcome if began else CallOutcome.NOT_RUN, text, now)
    return before


def close_inner(before: Step, outcome: CallOutcome, cause: InterruptionCause | StopCause, now: float) -> Step:
    """Close the open calls of scripts first: what their script did names them."""
    for call in before.session.turn.calls if before.session.turn else ():
        if call.within:
            began = call.state is CallState.STARTED
            text = note.no_outcome(cause) if began else note.not_run(cause)
            before = close(before, call, outcome if began else CallOutcome.NOT_RUN, text, now)
    return before


def _finish(before: Step, finished: ToolFinished, summary: str) -> Step:
    ended = CallEnded(
        session=before.session.id,
        turn=finished.turn,
        call=finished.call,
        name=finished.name,
        outcome=finished.outcome,
        took_s=finished.took_s,
        summary=summary,
    )
    return publishing(then(before, finished), ended)


def finish_inner(before: Step, call: Call, event: EndInside, now: float) -> Step:
    """Close the call of a script with its own outcome."""
    finished = ToolFinished(
        at=now,
        turn=event.turn,
        call=call.id,
        message=event.message,
        outcome=event.outcome,
        took_s=event.took_s,
        name=call.name,
        within=call.within,
    )
    return _finish(before, finished, call.summary)


def tool_returned(session: Session, event: ToolReport, now: float, limits: TurnLimits) -> Step:
    turn = session.turn
    call = next((call for call in turn.calls if call.id == event.call), None) if turn else None
    if turn is None or call is None or call.state is not CallState.STARTED:
        return Step(session=session)
    if (turn.id, turn.attempt) != (event.turn, event.attempt):
        return Step(session=session)
    finished = ToolFinished(
        at=now,
        turn=turn.id,
        call=call.id,
        message=event.message,
        outcome=event.outcome,
        took_s=event.took_s,
        name=call.name,
        spent=event.spent,
    )
    before = close_inner(Step(session=session), CallOutcome.UNKNOWN, InterruptionCause.UNKNOWN, now)
    return advance(_finish(before, finished, call.summary), now, limits)


# ---------------------------------------------------------------- answers


def read_answer(call: Call, text: str) -> str:
    """Return the answer of a plain message to a waiting call; empty if it is not an answer."""
    said = text.strip()
    if call.question:
        return _choice(call, said)
    word = said.lower().strip(" .!")
    if word in _ALL_OF_IT:
        return SHOW if call.cut else ""
    if word in _YES:
        return Approval.ONCE
    if word in _NO:
        return Approval.DENY
    return word if word in FOR_THE_SESSION else ""


def _choice(call: Call, said: str) -> str:
    """Return the choice that a number stands for."""
    numbered = {str(number): choice for number, choice in enumerate(call.choices, 1)}
    return numbered.get(said, said)


def answer(session: Session, event: Answer, now: float, limits: TurnLimits) -> Step:
    call = waiting_call(session)
    if call is None or event.call not in ("", call.id):
        which = f"call {event.call}" if event.call else "anything"
        return refuse(session, f"session {session.id} does not wait for an answer to {which}")
    if not is_asked(session, call, event.source):
        return refuse(session, f"only the person who began session {session.id} may answer for it")
    said = read_answer(call, event.answer)
    if not said:
        expected = "the answer is empty" if call.question else f"answer one of {', '.join(APPROVALS)}"
        return refuse(session, expected)
    if not may_answer(event.source.standing, rules_of(call), said):
        return refuse_with(session, needs_approver(session.id))
    if said == SHOW and not call.question:
        return show_whole(Step(session=session), call, now)
    if is_unseen(call, said):
        return refuse(session, NOT_SEEN)
    if said in FOR_THE_SESSION and said not in call.choices and not call.question:
        return refuse(session, ONCE_ONLY)
    return advance(resolve(Step(session=session), call, said, event.source, now), now, limits)


def is_asked(session: Session, call: Call, source: Source) -> bool:
    """Return whether a person may answer: the one who began the session, the owner, and admins for approvals."""
    role = source.standing
    if role is Role.OWNER or (role.approves and not call.question):
        return True
    return not session.owner or source.user == session.owner


def is_unseen(call: Call, said: str) -> bool:
    """Return whether an answer allows something of which only the beginning was shown."""
    return call.cut and said not in CUT


def resolve(before: Step, call: Call, said: str, source: Source, now: float) -> Step:
    """Record the answer to a call. It runs when the calls advance, unless it was denied."""
    session, turn = before.session, before.session.turn
    assert turn is not None
    by = source.by
    record = Answered(at=now, turn=turn.id, call=call.id, answer=said, by=by, role=source.standing, name=source.name)
    answered = then(before, record)
    event = CallAnswered(
        session=session.id, turn=turn.id, call=call.id, name=call.name, answer=said, by=by, summary=call.summary
    )
    answered = publishing(answered, event)
    if call.question:
        return close(answered, call, CallOutcome.OK, said, now)
    if said == Approval.DENY:
        return close(answered, call, CallOutcome.DENIED, note.DENIED, now)
    return answered


def merge_answer(before: Step, message: TurnId, now: float) -> Step:
    """Merge the message with the answer into the turn, hidden from the model."""
    turn = before.session.turn
    assert turn is not None
    return then(before, Merged(at=now, turn=message, into=turn.id, hidden=True))


def cut_off(before: Step, cause: InterruptionCause, now: float) -> tuple[Step, str]:
    """Close the calls of an interrupted turn. Calls that had started have no outcome; the later ones are not run.

    Return the note to the model as well. It is empty if the model has not answered in this turn, and if only calls
    that read were interrupted: those run again, and nothing may stand between a call and its outcome.
    """
    turn = before.session.turn
    assert turn is not None
    lost = [call for call in turn.calls if call.state is CallState.STARTED and not call.within]
    if lost:
        before = close_all(before, CallOutcome.UNKNOWN, cause, now)
    elif turn.calls:
        return before, ""
    steered = any(waiting.steer for waiting in before.session.queue)
    if not (steered or turn.replies or turn.written):
        return before, ""  # the model gets the same request again
    return before, note.interrupted(cause, lost=lost, written=turn.written, answer_first=steered)
