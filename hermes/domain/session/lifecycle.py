"""End, reset and preferences of a session."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from hermes.domain.cause.cause import EndCause, StopCause
from hermes.domain.cause.reason import with_person
from hermes.domain.child.child import Purpose, child_id
from hermes.domain.errors import SessionInUseError
from hermes.domain.events import Notice
from hermes.domain.ids import InboundKey, TurnId
from hermes.domain.records import ChildStarted, Continued, Ended, HandedOver, Posted, Preferred, ResetBlocked
from hermes.domain.retention import is_unused
from hermes.domain.session import calls
from hermes.domain.session.builder import change_phase, give_up, open_turns, publishing, refuse, refuse_with, then
from hermes.domain.session.protocol import (
    EndSession,
    HandOver,
    NoteBlocked,
    NotePost,
    ResetSession,
    SetPreference,
    StartBackground,
    Step,
    TurnLimits,
)
from hermes.domain.session.state import Phase, Preferences, Session, is_open, is_pending
from hermes.domain.session.turn_stop import cancellation
from hermes.domain.text.title import clean_title
from hermes.domain.turn.submission import Seen
from hermes.domain.turn.tool_call import CallOutcome
from hermes.domain.values import replace

_PREFERENCES = tuple(field.name for field in fields(Preferences))


def end(session: Session, event: EndSession, now: float, _limits: TurnLimits) -> Step:
    if session.phase == Phase.ENDED:
        return refuse(session, f"session {session.id} has ended already")
    if event.unused_since is not None and not is_unused(session, event.unused_since):
        return refuse_with(session, SessionInUseError(f"session {session.id} was used meanwhile"))
    failure = cancellation(event, StopCause.SESSION_ENDED)
    result = calls.close_all(Step(session=session), CallOutcome.STOPPED, StopCause.SESSION_ENDED, now)
    for turn in open_turns(session):
        result = give_up(result, turn.id, failure, now, by=event.by)
    reason = with_person(event.reason, event.who)
    ended = change_phase(result, Ended(at=now, reason=reason, cause=event.cause))
    if event.successor is None:
        return ended
    return then(ended, Continued(at=now, successor=event.successor, reason=reason))


def hand_over(session: Session, event: HandOver, now: float, _limits: TurnLimits) -> Step:
    if session.phase != Phase.IDLE or is_pending(session):
        return refuse(session, f"session {session.id} is {session.phase}; it can move when it is idle")
    moved = then(Step(session=session), HandedOver(at=now, handover=event.handover))
    return replace(moved, bind=event.handover.key)


def note_post(session: Session, event: NotePost, now: float, _limits: TurnLimits) -> Step:
    if not is_open(session):
        return refuse(session, f"session {session.id} is {session.phase}")
    sent = event.outgoing
    posted = Posted(at=now, id=sent.id, place=sent.place, text=sent.text, shown=event.shown, queued=event.queued)
    key = InboundKey(f"post:{sent.id}")
    seen = Seen(key=key, session=session.id, turn=TurnId(""), fingerprint=b"", at=now)
    return replace(then(Step(session=session), posted), seen=seen)


def reset(session: Session, event: ResetSession, now: float, _limits: TurnLimits) -> Step:
    if not _rests_since(session, event.active_at):
        return Step(session=session)
    end = Ended(at=now, reason=event.reason, notice=event.notice, cause=EndCause.RESET)
    ended = change_phase(Step(session=session), end)
    return publishing(ended, Notice(session=session.id, text=event.notice)) if event.notice else ended


def note_blocked(session: Session, event: NoteBlocked, now: float, _limits: TurnLimits) -> Step:
    if not _rests_since(session, event.active_at) or session.blocked_by == event.by:
        return Step(session=session)
    return then(Step(session=session), ResetBlocked(at=now, by=event.by, reason=event.reason))


def _rests_since(session: Session, active_at: float) -> bool:
    """Return whether the session is idle and no person has written since the decision."""
    return session.phase == Phase.IDLE and not is_pending(session) and session.active_at == active_at


def start_background(session: Session, event: StartBackground, now: float, _limits: TurnLimits) -> Step:
    if not is_open(session):
        return refuse(session, f"session {session.id} is {session.phase}")
    key = f"{Purpose.BACKGROUND}:{session.id}:{event.turn}"
    started = ChildStarted(
        at=now,
        turn=event.turn,
        child=child_id(key, now),
        key=key,
        purpose=Purpose.BACKGROUND,
        by=event.source.by,
        name=event.source.name,
        role=event.source.standing,
        task=event.task,
    )
    return then(Step(session=session), started)


def set_preference(session: Session, event: SetPreference, now: float, _limits: TurnLimits) -> Step:
    if event.name not in _PREFERENCES:
        return refuse(session, f"there is no preference {event.name!r}; there are {', '.join(_PREFERENCES)}")
    value = clean_title(event.value) if event.name == "title" and isinstance(event.value, str) else event.value
    changes: dict[str, Any] = {event.name: value}
    preferences = replace(session.preferences, **changes)
    if preferences == session.preferences:
        return Step(session=session)
    return then(Step(session=session), Preferred(at=now, preferences=preferences, reason=event.reason))
