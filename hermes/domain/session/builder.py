"""Functions that add records and effects to a step."""

from __future__ import annotations

import json

from hermes.domain.errors import BadInputError
from hermes.domain.events import Event as LiveEvent
from hermes.domain.events import PhaseChanged, TurnBegan, TurnGaveUp
from hermes.domain.ids import TurnId
from hermes.domain.records import Ended, Record, Resumed, Suspended, ToolFinished, TurnFailed, TurnStarted
from hermes.domain.session.fold.state_fold import evolve
from hermes.domain.session.note import NO_RESULT, posted, reset_blocked
from hermes.domain.session.protocol import Effect, Publish, Refuse, Step
from hermes.domain.session.state import Session, Turn
from hermes.domain.source import Place
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.tool_call import CallOutcome
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.values import replace


def then(before: Step, *records: Record, effects: tuple[Effect, ...] = ()) -> Step:
    session = before.session
    for record in records:
        session = evolve(session, record)
    return replace(before, session=session, records=(*before.records, *records), effects=(*before.effects, *effects))


def publishing(before: Step, *events: LiveEvent) -> Step:
    return replace(before, effects=(*before.effects, *(Publish(event=event) for event in events)))


def change_phase(before: Step, record: Suspended | Resumed | Ended) -> Step:
    after = then(before, record)
    changed = PhaseChanged(session=after.session.id, phase=after.session.phase, reason=record.reason)
    return publishing(after, replace(changed, cause=record.cause) if isinstance(record, Ended) else changed)


def start(before: Step, turn: Turn, now: float, *, note: str = "") -> Step:
    """Start the turn, or its next attempt."""
    before = close_handed(before, turn.id, turn.results, now)
    session = before.session
    blocked = reset_blocked(session.blocked_reason) if session.blocked_by else ""
    attempt = turn.attempt + 1
    # A later attempt can go on between a call and its result, where no note fits: posts wait for the next turn.
    mirrored = posted(session.posted) if session.posted and attempt == 1 else ""
    notes = "\n".join(filter(None, (note, blocked, mirrored)))
    began = Publish(event=TurnBegan(session=session.id, turn=turn.id, attempt=attempt))
    return then(before, TurnStarted(at=now, turn=turn.id, attempt=attempt, note=notes), effects=(began,))


def close_handed(before: Step, turn: TurnId, results: tuple[str, ...], now: float) -> Step:
    """Close the calls that a client was to run and whose results it did not send."""
    for call in before.session.handed:
        if call.id not in results:
            message = encode(role="tool", tool_call_id=call.id, content=NO_RESULT)
            outcome = CallOutcome.NO_RESULT
            closed = ToolFinished(at=now, turn=turn, call=call.id, message=message, outcome=outcome, name=call.name)
            before = then(before, closed)
    return before


def start_next(before: Step, now: float) -> Step:
    """Start the first queued turn, unless a stop is announced or a compression runs."""
    session = before.session
    if session.turn is not None or not session.queue or session.resume_reason or session.compressing:
        return before
    return start(before, session.queue[0], now)


def give_up(before: Step, turn: TurnId, failure: Failure, now: float, *, by: Place | None = None) -> Step:
    """End the turn without an answer and tell the senders of its messages.

    `by`: chat in which the stop was requested; it gets no notice.
    """
    waiting = waiting_messages(before.session, turn)
    places = (each.place for each in open_turns(before.session) if each.id == turn)
    knows = any(by and place and (place.platform, place.chat) == (by.platform, by.chat) for place in places)
    return publishing(
        then(before, TurnFailed(at=now, turn=turn, failure=failure, told=knows)),
        *(TurnGaveUp(session=before.session.id, turn=each, failure=failure) for each in waiting),
    )


def waiting_messages(session: Session, turn: TurnId) -> tuple[TurnId, ...]:
    """Return the messages whose senders wait for the turn: its own, and those merged into it."""
    current = session.turn
    return (turn, *current.merged) if current is not None and current.id == turn else (turn,)


def refuse(session: Session, problem: str) -> Step:
    return refuse_with(session, BadInputError(problem, code="wrong_phase"))


def refuse_with(session: Session, error: BadInputError) -> Step:
    return Step(session=session, effects=(Refuse(error=error),))


def open_turns(session: Session) -> tuple[Turn, ...]:
    return session.queue if session.turn is None else (session.turn, *session.queue)


def given_up(session: Session, failure: Failure) -> list[TurnGaveUp]:
    """Return the events for the senders of all open turns."""
    return [
        TurnGaveUp(session=session.id, turn=waiting, failure=failure)
        for turn in open_turns(session)
        for waiting in (turn.id, *turn.merged)
    ]


def suspension(session: Session) -> Failure:
    what = f"session {session.id} is suspended ({session.reason}); the message is kept"
    message = f"{what}, and `hermes resume {session.id}` goes on with it"
    return Failure(kind=FailureKind.SUSPENDED, message=message)


def encode(**fields: object) -> EncodedMessage:
    """Return a chat message in the bytes in which it is stored and sent."""
    return EncodedMessage(json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode())
