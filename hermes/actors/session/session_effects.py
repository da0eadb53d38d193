"""Effects of a session's step that need no state of the actor: replies, live events, mail for the directory."""

from __future__ import annotations

from typing import assert_never

from loguru import logger

from hermes.actors.session.session_mail import Post, Returned, SessionServices, Succeeded, fail
from hermes.domain.events import Event as LiveEvent
from hermes.domain.events import PhaseChanged, SessionOpened, TurnAccepted
from hermes.domain.ids import SessionId
from hermes.domain.session.protocol import Accept, Publish, Refuse, Reroute, SuccessorSession
from hermes.domain.session.state import Phase, Session
from hermes.domain.turn.submission import Receipt


def perform(effect: Accept | Refuse | Reroute | Publish, post: Post, session: SessionId, to: SessionServices) -> bool:
    """Perform an effect. Return whether it answered the sender."""
    match effect:
        case Accept():
            _accept(effect, post, session, to)
        case Refuse():
            fail(post, effect.error)
        case Reroute():
            give_back(post, session, to, moved=True)
        case Publish():
            _publish(effect.event, to)
            return False
        case _:
            assert_never(effect)
    return True


def give_back(post: Post, session: SessionId, to: SessionServices, *, moved: bool) -> None:
    """Return mail to the directory. A session's own mail is dropped: its next actor starts from the disk."""
    if post.reply is not None:
        to.tell_directory(Returned(session=session, post=post, moved=moved))


def hand_over(session: Session, child: SuccessorSession, to: SessionServices) -> None:
    """Let the child continue what is open in a session that has ended."""
    logger.info("session {} continues {}: {}", child.session.id, session.id, child.session.reason)
    if session.phase == Phase.ENDED:
        to.tell_directory(Succeeded(session=session.id, child=child.session))


def _accept(accept: Accept, post: Post, session: SessionId, to: SessionServices) -> None:
    if post.reply is not None:
        receipt = Receipt(
            session=session,
            turn=accept.turn,
            position=accept.position,
            notice=post.notice,
            handling=accept.handling,
            into=accept.into,
            opened=accept.opened,
        )
        post.reply.settle(receipt)
    to.hub.publish(TurnAccepted(session=session, turn=accept.turn, position=accept.position))


def opened(session: Session) -> SessionOpened:
    purpose = "" if session.assignment is None else str(session.assignment.purpose)
    return SessionOpened(session=session.id, platform=session.platform, reason=session.reason, purpose=purpose)


def _publish(event: LiveEvent, to: SessionServices) -> None:
    if isinstance(event, PhaseChanged):
        logger.info("session {} is {}: {}", event.session, event.phase, event.reason)
    to.hub.publish(event)
