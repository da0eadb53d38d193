"""What a session does, as a pure function: `step(session, event, now)` says the next state, what to record and
what to do once it is recorded. No clock, no disk, no loop: it can be tested by the thousand.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import assert_never

from hermes.actors.session_protocol import (
    Accept,
    AnnounceStop,
    BeginTurn,
    CancelTurn,
    Deliver,
    Effect,
    End,
    Event,
    Publish,
    Recover,
    Refuse,
    Reroute,
    Resume,
    Step,
    StopTurn,
    Suspend,
    TurnErrored,
    TurnSucceeded,
)
from hermes.actors.session_state import OPEN_PHASES, evolve
from hermes.errors import BadInputError, BusyError
from hermes.events import PhaseChanged, TurnAnswered, TurnBegan, TurnGaveUp
from hermes.records import (
    Ended,
    MarkedResumePending,
    MessageReceived,
    Record,
    Resumed,
    Suspended,
    TurnFailed,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
)
from hermes.types import EncodedMessage, Failure, FailureKind, Phase, Seen, Session, Turn, TurnId

SUSPEND_AFTER = 3  # interruptions in a row without one finished turn
DELETED = Failure(kind=FailureKind.CANCELLED, message="the session was deleted, and the message with it")


def step(session: Session, event: Event, now: float, *, max_queue: int = 32) -> Step:
    """The next state, what to record, and what to do once it is recorded."""
    match event:
        case Deliver():
            return _deliver(session, event, now, max_queue)
        case TurnSucceeded():
            return _succeed(session, event, now)
        case TurnErrored():
            return _fail(session, event.turn, event.attempt, event.failure, now)
        case StopTurn():
            return _stop_turn(session, event, now)
        case AnnounceStop():
            return _announce_stop(session, event, now)
        case Recover():
            return _recover(session, event, now)
        case Suspend():
            return _suspend(session, event, now)
        case Resume():
            return _resume(session, event, now)
        case End():
            return _end(session, event, now)
        case _:
            assert_never(event)


def _deliver(session: Session, event: Deliver, now: float, max_queue: int) -> Step:
    if session.phase in (Phase.SUSPENDED, Phase.ENDED):
        return Step(session=session, effects=(Reroute(),))
    if len(session.queue) >= max_queue:
        error = BusyError(f"{max_queue} messages already wait in session {session.id}; nothing was stored, try again")
        return Step(session=session, effects=(Refuse(error=error),))
    received = MessageReceived(
        at=now, turn=event.turn, messages=event.messages, source=event.source, options=event.options
    )
    position = len(session.queue) + (session.turn is not None)
    accepted = _recorded(session, (received,), (Accept(turn=event.turn, position=position),))
    seen = event.inbound and Seen(
        key=event.inbound, session=session.id, turn=event.turn, fingerprint=event.fingerprint, at=now
    )
    started = accepted if session.phase in OPEN_PHASES else _start_next(accepted, now)
    return replace(started, seen=seen or None)


def _succeed(session: Session, event: TurnSucceeded, now: float) -> Step:
    if not _is_current(session, event.turn, event.attempt):
        return Step(session=session)
    finished = TurnFinished(
        at=now,
        turn=event.turn,
        message=encode_answer(event.text),
        model=event.model,
        finish_reason=event.finish_reason,
        usage=event.usage,
    )
    answered = TurnAnswered(
        session=session.id,
        turn=event.turn,
        text=event.text,
        model=event.model,
        finish_reason=event.finish_reason,
        usage=event.usage,
    )
    return _start_next(_recorded(session, (finished,), (Publish(event=answered),)), now)


def _fail(session: Session, turn: TurnId, attempt: int, failure: Failure, now: float) -> Step:
    if not _is_current(session, turn, attempt):
        return Step(session=session)
    return _start_next(_given_up(Step(session=session), turn, failure, now), now)


def _stop_turn(session: Session, event: StopTurn, now: float) -> Step:
    if session.turn is None and not session.queue:
        return Step(session=session)
    running = session.turn is not None and event.turn in (None, session.turn.id)
    target = session.turn if running else next((turn for turn in session.queue if turn.id == event.turn), None)
    if target is None:
        return Step(session=session)
    failure = Failure(kind=FailureKind.CANCELLED, message=f"stopped: {event.reason}")
    stopped = _given_up(Step(session=session, effects=(CancelTurn(),) if running else ()), target.id, failure, now)
    return _start_next(stopped, now) if running and session.phase != Phase.SUSPENDED else stopped


def _announce_stop(session: Session, event: AnnounceStop, now: float) -> Step:
    if session.turn is None or session.phase not in OPEN_PHASES or session.resume_reason:
        return Step(session=session)
    return _recorded(session, (MarkedResumePending(at=now, reason=event.reason),))


def _recover(session: Session, event: Recover, now: float) -> Step:
    if session.phase not in OPEN_PHASES:
        return Step(session=session)
    if session.turn is None:  # a stop was announced and done before these messages had their turn
        return _start(Step(session=session), session.queue[0], now)
    reason = session.resume_reason or event.reason
    cut = _recorded(session, (TurnInterrupted(at=now, turn=session.turn.id, reason=reason),))
    if cut.session.interruptions < SUSPEND_AFTER:
        return _start(cut, session.turn, now)
    why = f"interrupted {cut.session.interruptions} times in a row without one finished turn, last by: {reason}"
    return _put_to_sleep(cut, Suspended(at=now, reason=why))


def _suspend(session: Session, event: Suspend, now: float) -> Step:
    if session.phase in (Phase.SUSPENDED, Phase.ENDED):
        return _refuse(session, f"session {session.id} is {session.phase} already")
    before = Step(session=session)
    if session.turn is not None:
        cut = (TurnInterrupted(at=now, turn=session.turn.id, reason=event.reason),)
        before = _recorded(session, cut, (CancelTurn(),))
    return _put_to_sleep(before, Suspended(at=now, reason=event.reason))


def _resume(session: Session, event: Resume, now: float) -> Step:
    if session.phase != Phase.SUSPENDED:
        return _refuse(session, f"session {session.id} is {session.phase}, not suspended: there is nothing to resume")
    resumed = _change_phase(Step(session=session), Resumed(at=now, reason=event.reason))
    return _start(resumed, session.turn, now) if session.turn is not None else _start_next(resumed, now)


def _end(session: Session, event: End, now: float) -> Step:
    if session.phase == Phase.ENDED:
        return _refuse(session, f"session {session.id} has ended already")
    failure = Failure(kind=FailureKind.CANCELLED, message=f"the session ended: {event.reason}")
    result = Step(session=session, effects=(CancelTurn(),) if session.turn is not None else ())
    for turn in open_turns(session):
        result = _given_up(result, turn.id, failure, now)
    return _change_phase(result, Ended(at=now, reason=event.reason))


# ---------------------------------------------------------------- the pieces they are made of


def _recorded(session: Session, records: tuple[Record, ...], effects: tuple[Effect, ...] = ()) -> Step:
    return _then(Step(session=session), records, effects)


def _then(before: Step, records: tuple[Record, ...], effects: tuple[Effect, ...] = ()) -> Step:
    session = before.session
    for record in records:
        session = evolve(session, record)
    return replace(before, session=session, records=(*before.records, *records), effects=(*before.effects, *effects))


def _change_phase(before: Step, record: Suspended | Resumed | Ended) -> Step:
    after = _then(before, (record,))
    changed = PhaseChanged(session=after.session.id, phase=after.session.phase, reason=record.reason)
    return replace(after, effects=(*after.effects, Publish(event=changed)))


def _put_to_sleep(before: Step, suspended: Suspended) -> Step:
    """Whoever waits for an open turn is told now; the turn itself stays and goes on when the session is resumed."""
    after = _change_phase(before, suspended)
    told = (Publish(event=event) for event in given_up(after.session, suspension(after.session)))
    return replace(after, effects=(*after.effects, *told))


def open_turns(session: Session) -> tuple[Turn, ...]:
    return session.queue if session.turn is None else (session.turn, *session.queue)


def given_up(session: Session, failure: Failure) -> list[TurnGaveUp]:
    """What whoever waits for one of its open turns is told."""
    return [TurnGaveUp(session=session.id, turn=turn.id, failure=failure) for turn in open_turns(session)]


def suspension(session: Session) -> Failure:
    what = f"session {session.id} is suspended ({session.reason}); the message is kept"
    message = f"{what}, and `hermes resume {session.id}` goes on with it"
    return Failure(kind=FailureKind.SUSPENDED, message=message)


def _given_up(before: Step, turn: TurnId, failure: Failure, now: float) -> Step:
    gave_up = TurnGaveUp(session=before.session.id, turn=turn, failure=failure)
    return _then(before, (TurnFailed(at=now, turn=turn, failure=failure),), (Publish(event=gave_up),))


def _start_next(before: Step, now: float) -> Step:
    """Start what waits first, unless a stop has been announced: then it waits for the next start."""
    session = before.session
    if session.turn is not None or not session.queue or session.resume_reason:
        return before
    return _start(before, session.queue[0], now)


def _start(before: Step, turn: Turn, now: float) -> Step:
    started = _then(before, (TurnStarted(at=now, turn=turn.id, attempt=turn.attempt + 1),))
    current = started.session.turn
    assert current is not None
    began = TurnBegan(session=started.session.id, turn=current.id, attempt=current.attempt)
    return replace(started, effects=(*started.effects, Publish(event=began), BeginTurn(turn=current)))


def _refuse(session: Session, problem: str) -> Step:
    return Step(session=session, effects=(Refuse(error=BadInputError(problem, code="wrong_phase")),))


def _is_current(session: Session, turn: TurnId, attempt: int) -> bool:
    """A late report of a run that was stopped or restarted since is nobody's any more."""
    current = session.turn
    return session.phase == Phase.RUNNING and current is not None and (current.id, current.attempt) == (turn, attempt)


def encode_answer(text: str) -> EncodedMessage:
    message = {"role": "assistant", "content": text}
    return EncodedMessage(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode())
