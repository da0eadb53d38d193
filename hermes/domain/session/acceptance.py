"""Acceptance of messages: a message starts a turn, waits, joins another one, answers a call or is refused."""

from __future__ import annotations

import json

from hermes.domain.access.api_key import may_write
from hermes.domain.access.permission import may_answer, needs_approver, rules_of
from hermes.domain.access.question import SHOW, waiting_call
from hermes.domain.cause.cause import StopCause
from hermes.domain.cause.reason import NEW_MESSAGE
from hermes.domain.errors import BadInputError, QueueFullError
from hermes.domain.history.call_pair import is_answered, paired, without_repeats
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.records import Amended, Instructed, MessageReceived, Preferred, Record, Undone
from hermes.domain.session import calls
from hermes.domain.session.builder import open_turns, refuse, refuse_with, start_next, then
from hermes.domain.session.protocol import (
    Accept,
    Begin,
    Hold,
    Refuse,
    Reroute,
    Rewrite,
    StartHeld,
    Step,
    StopTurn,
    TurnLimits,
    Undo,
)
from hermes.domain.session.recovery import continue_turn
from hermes.domain.session.state import Phase, Session, Turn, instructions_hash, interruption_cause, is_open
from hermes.domain.session.turn_role import role_of_turn
from hermes.domain.session.turn_stop import stop_current
from hermes.domain.text.title import clean_title
from hermes.domain.turn.submission import Busy, Handling, Seen, Submission
from hermes.domain.turn.tool_call import Approval, Call
from hermes.domain.values import replace


def begin_session(session: Session, event: Begin, now: float, _limits: TurnLimits) -> Step:
    if not is_open(session):
        return Step(session=session, effects=(Reroute(),))
    if not may_write(event.source.platform, session):
        return refuse_with(session, _taken(session.id))
    preferences = replace(session.preferences, title=clean_title(event.title) or session.preferences.title)
    return then(Step(session=session), Preferred(at=now, preferences=preferences, reason="it was begun"))


def deliver(session: Session, event: Submission, now: float, limits: TurnLimits) -> Step:
    if not is_open(session):
        return Step(session=session, effects=(Reroute(),))
    if not may_write(event.source.platform, session):
        return refuse_with(session, _taken(session.id))
    if (event.results or event.retries) and (problem := _misfit(session, event)):
        return refuse_with(session, problem)
    if any(turn.id == event.joins for turn in session.queue):
        return _join(session, event, now)
    held = session.turn if session.phase == Phase.RESUME_PENDING else None
    if held is not None and not event.source.automatic:  # an automatic message waits as well
        return _deliver_to_held_turn(session, held, event, now, limits)
    if (asking := waiting_call(session)) is not None and (said := _answer_in(event, asking, session)):
        return _answer(session, event, asking, said, now=now, limits=limits)
    if asking is not None and event.replies and event.may_answer:
        return _deny_with_words(session, event, asking, now, limits)
    if len(session.queue) >= limits.max_queue:
        return _refuse_full_queue(session, limits)
    handling = _handling(session, event, limits)
    accepted = _received(session, event, now, handling)
    if handling is Handling.INTERRUPTING:
        stop = StopTurn(reason=NEW_MESSAGE, by=event.source.place)
        accepted = stop_current(accepted, stop, StopCause.NEW_MESSAGE, now)
    return _start_or_hold(accepted, event, now)


def _taken(session: SessionId) -> BadInputError:
    """Return the refusal for a key whose first message met that of another key in one new session."""
    message = f"The session {session} belongs to another API key. Nothing was stored; choose another id."
    return BadInputError(message, param="session_id", code="session_of_another_key")


def _answer(session: Session, event: Submission, asking: Call, said: str, *, now: float, limits: TurnLimits) -> Step:
    """Answer the waiting call with the message."""
    if not may_answer(event.source.standing, rules_of(asking), said):
        return refuse_with(session, needs_approver(session.id))
    if calls.is_unseen(asking, said):
        return refuse(session, calls.NOT_SEEN)
    merged = calls.merge_answer(_received(session, event, now, Handling.ANSWER), event.turn, now)
    if said == SHOW and asking.cut:
        return calls.show_whole(merged, asking, now)
    return calls.advance(calls.resolve(merged, asking, said, event.source, now), now, limits)


def _deny_with_words(session: Session, event: Submission, asking: Call, now: float, limits: TurnLimits) -> Step:
    """Deny the waiting call: its client can only reply in words, and these are no answer. The model reads them."""
    received = _received(session, event, now, Handling.STEERING)
    return calls.advance(calls.resolve(received, asking, Approval.DENY, event.source, now), now, limits)


def _misfit(session: Session, event: Submission) -> BadInputError | None:
    """Return why results of calls, or another try of the last turn, do not fit the session now."""
    if not session.messages and event.opening and not event.retries and _continues(event):
        return None
    idle = session.turn is None and not session.queue and not session.compressing
    if event.retries:
        fits = idle and session.last_failure is not None
        return None if fits else BadInputError("the last turn did not fail", code="wrong_phase")
    if idle and set(event.results) <= {call.id for call in session.handed}:
        return None
    waiting = ", ".join(call.id for call in session.handed) or "none"
    message = f"These calls do not wait for a result: {', '.join(event.results)}. Waiting in {session.id}: {waiting}."
    return BadInputError(message, param="messages", code="call_not_waiting")


def _continues(event: Submission) -> bool:
    """Return whether the client's history has a call for the results, or something else follows them."""
    follows = json.loads(event.messages[-1])["role"] != "tool"
    return follows or is_answered(event.opening, event.messages)


def start_held(session: Session, _event: StartHeld, now: float, _limits: TurnLimits) -> Step:
    before = Step(session=session)
    return start_next(before, now) if is_open(session) else before


def _join(session: Session, event: Submission, now: float) -> Step:
    """Join the rest of a queued message; it gets no turn of its own."""
    assert event.joins is not None
    ahead = [turn.id for turn in open_turns(session)].index(event.joins)
    accept = Accept(turn=event.joins, position=ahead, handling=Handling.JOINED)
    amended = Amended(
        at=now, turn=event.joins, messages=event.messages, inbound=event.inbound, role=event.source.standing
    )
    joined = then(Step(session=session), amended, effects=(accept,))
    return _start_or_hold(replace(joined, seen=_seen(session, event, event.joins, now), also=event.also), event, now)


def _start_or_hold(accepted: Step, event: Submission, now: float) -> Step:
    if event.more_s > 0 and accepted.session.turn is None:
        return replace(accepted, effects=(*accepted.effects, Hold(wait_s=event.more_s)))
    return start_next(accepted, now)


def rewrite(session: Session, event: Rewrite, now: float, _limits: TurnLimits) -> Step:
    waiting = next((turn for turn in session.queue if turn.place == event.place), None)
    if waiting is None:
        return refuse(session, "that message does not wait any more: it was answered, or is being answered")
    return then(
        Step(session=session),
        Amended(at=now, turn=waiting.id, messages=(event.message,), replaces=True, role=event.role),
    )


def _refuse_full_queue(session: Session, limits: TurnLimits) -> Step:
    many = f"{limits.max_queue} messages already wait in session {session.id}"
    return Step(session=session, effects=(Refuse(error=QueueFullError(f"{many}; nothing was stored, try again")),))


def _deliver_to_held_turn(session: Session, turn: Turn, event: Submission, now: float, limits: TurnLimits) -> Step:
    """Continue a held turn; the person's message becomes part of it.

    Messages that were queued before go first.
    """
    if len(session.queue) >= limits.max_queue:
        return _refuse_full_queue(session, limits)
    joins = not session.queue and _may_steer(session, event)
    received = _received(session, event, now, Handling.STEERING if joins else Handling.QUEUED)
    return continue_turn(received, turn, interruption_cause(session), now, limits)


def _handling(session: Session, event: Submission, limits: TurnLimits) -> Handling:
    if session.turn is None:
        return Handling.QUEUED if session.queue or session.compressing else Handling.STARTED
    wish = event.busy or session.preferences.busy or limits.busy
    if wish == Busy.STEER:
        return Handling.STEERING if _may_steer(session, event) else Handling.QUEUED
    return Handling.INTERRUPTING if wish == Busy.INTERRUPT and not session.compressing else Handling.QUEUED


def _may_steer(session: Session, event: Submission) -> bool:
    """Return whether a message may steer. A lower role must wait, since it would lower the role of the turn."""
    return event.source.standing.includes(role_of_turn(session))


def _received(session: Session, event: Submission, now: float, handling: Handling) -> Step:
    opening = event.opening if not session.messages else ()
    messages = paired((*opening, *event.messages)) if opening else without_repeats(event.messages)
    received = MessageReceived(
        at=now,
        turn=event.turn,
        messages=messages,
        source=event.source,
        options=event.options,
        steer=handling is Handling.STEERING,
        inbound=event.inbound,
        chain=event.chain,
        results=event.results,
    )
    ahead = session.turn is not None and handling is not Handling.INTERRUPTING
    first = 0 if handling is Handling.ANSWER else len(session.queue) + ahead
    into = session.turn.id if session.turn is not None and handling is Handling.ANSWER else None
    accept = Accept(turn=event.turn, position=first, handling=handling, into=into, opened=bool(opening))
    accepted = then(_instructed(session, event, now), received, effects=(accept,))
    located = _located(event, session.id, now)
    return replace(
        accepted,
        seen=_seen(session, event, event.turn, now),
        also=event.also,
        located=() if event.once else located,
        once=located if event.once else (),
    )


def _instructed(session: Session, event: Submission, now: float) -> Step:
    """Record the client's instructions if they have changed."""
    before, given = Step(session=session), event.instructions
    if given is None or instructions_hash(given) == session.instructed:
        return before
    return then(before, Instructed(at=now, message=given))


def _located(event: Submission, session: SessionId, now: float) -> tuple[Seen, ...]:
    return tuple(Seen(key=key, session=session, turn=event.turn, fingerprint=b"", at=now) for key in event.locates)


def _seen(session: Session, event: Submission, turn: TurnId, now: float) -> Seen | None:
    if not event.inbound:
        return None
    return Seen(key=event.inbound, session=session.id, turn=turn, fingerprint=event.fingerprint, at=now)


def _answer_in(event: Submission, asking: Call, session: Session) -> str:
    """Return the answer that a plain message gives to a waiting call; empty if it is not an answer."""
    if event.busy or not event.may_answer:
        return ""
    content = json.loads(event.messages[-1]).get("content")
    if not isinstance(content, str) or not calls.is_asked(session, asking, event.source):
        return ""
    return calls.read_answer(asking, event.said or content)


def undo(session: Session, event: Undo, now: float, limits: TurnLimits) -> Step:
    if session.phase != Phase.IDLE or session.compressing or session.queue:
        doing = "being compressed" if session.compressing else session.phase
        return refuse(session, f"session {session.id} is {doing}; wait for it, or stop it first")
    undone: Record = Undone(at=now, seq=event.seq, offset=event.offset, turns=event.turns, reason=event.reason)
    after = then(Step(session=session), undone)
    if event.again is None:
        return after
    delivered = deliver(after.session, event.again, now, limits)
    return replace(delivered, records=(*after.records, *delivered.records))
