"""Opening of sessions: under a new address, or after a session that takes no more messages. Pure.

Only a person opens one, or the start of a child session. Another automatic message, for example the end of a process,
is refused without a session.
"""

from __future__ import annotations

from hermes.domain.child.child import Assignment, child_key
from hermes.domain.errors import HermesError, SessionClosedError, SessionParkedError, UnknownSessionError
from hermes.domain.ids import Epoch, SessionId, SessionKey
from hermes.domain.operations import Append
from hermes.domain.read.lineage import Address
from hermes.domain.records import Continued, SessionStarted
from hermes.domain.session.fold.state_fold import begin, evolve
from hermes.domain.session.protocol import Begin
from hermes.domain.session.state import Phase, Session, is_pending
from hermes.domain.source import Source
from hermes.domain.turn.submission import Submission
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    session: Session
    started: SessionStarted
    alongside: tuple[Append, ...]  # links the parent to it, in the transaction that first stores it
    notice: str  # for the person who wrote


def open_session(
    *,
    fresh_id: SessionId,
    address: Address,
    event: Submission | Begin,
    parent: Session | None,
    epoch: Epoch,
    now: float,
) -> Opening:
    source = event.source
    if parent is None:
        session = address.session or fresh_id
        if (assignment := _assignment(event)) is not None:
            started = _child_started(assignment, session, source, now)
            return Opening(session=begin(session, started), started=started, alongside=(), notice="")
        key = address.key or SessionKey(f"agent:main:{source.platform}:dm:{session}")
        started = SessionStarted(at=now, key=key, source=source, reason="first message")
        return Opening(session=begin(session, started), started=started, alongside=(), notice="")
    reason, notice = _why_fresh(parent)
    if _was_told(parent, source):
        notice = ""
    key = address.key or parent.key  # a session can have been taken up under another key than it began with
    started = SessionStarted(at=now, key=key, source=source, reason=reason, parent=parent.id)
    link = _link(parent, Continued(at=now, successor=fresh_id, reason=reason), epoch)
    return Opening(session=begin(fresh_id, started), started=started, alongside=(link,), notice=notice)


def may_open(event: Submission | Begin, head: Session | None) -> bool:
    """Return whether the event may open a session: a person's, or one that starts a child which does not exist."""
    return not event.source.automatic or (head is None and _assignment(event) is not None)


def _assignment(event: Submission | Begin) -> Assignment | None:
    return event.assignment if isinstance(event, Submission) else None


def _child_started(assignment: Assignment, session: SessionId, source: Source, now: float) -> SessionStarted:
    key, reason = child_key(assignment, session), f"{assignment.purpose} for {assignment.parent or 'the daemon'}"
    return SessionStarted(at=now, key=key, source=source, reason=reason, assignment=assignment)


def no_open_session(address: Address, head: Session | None) -> HermesError:
    """Return why an automatic message is refused. A suspended session may take it later."""
    if head is None:
        return UnknownSessionError(f"there is no session {address.session or address.key}")
    if head.phase == Phase.SUSPENDED:
        return SessionParkedError(f"session {head.id} is suspended: {head.reason}")
    return SessionClosedError(f"session {head.id} has ended ({head.reason}), and no person has written since")


def _link(parent: Session, continued: Continued, epoch: Epoch) -> Append:
    head = evolve(parent, continued)
    return Append(
        session=parent.id,
        expected_seq=parent.next_seq,
        epoch=epoch,
        records=(continued,),
        head=head,
        pending=is_pending(head),
    )


def _was_told(parent: Session, source: Source) -> bool:
    """Return whether its end was already announced in the chat where the person writes."""
    there, here = parent.place, source.place
    if there is None or here is None or (parent.notice is None and parent.phase != Phase.SUSPENDED):
        return False
    return (there.platform, there.chat, there.thread) == (here.platform, here.chat, here.thread)


def _why_fresh(parent: Session) -> tuple[str, str]:
    """Return the reason for the journal and the notice for the person."""
    if parent.notice is not None:
        return f"{parent.id} was reset ({parent.reason})", parent.notice
    if parent.phase == Phase.SUSPENDED:
        return f"{parent.id} is suspended", (
            f"The earlier session {parent.id} is suspended: {parent.reason}. This is a fresh one; "
            f"/resume {parent.id} brings the earlier one back."
        )
    return f"{parent.id} has ended", f"The earlier session {parent.id} ended ({parent.reason}). This is a fresh one."
