"""Crashes of sessions: whether one comes back, what becomes of the message that killed it, and who hears of it."""

from __future__ import annotations

from loguru import logger

from hermes.actors.kernel.actor import ActorDied
from hermes.actors.session.session_mail import Post, fail
from hermes.domain.cause.cause import InterruptionCause
from hermes.domain.errors import HermesError, SessionParkedError, SetAsideError
from hermes.domain.events import ActorFailed
from hermes.domain.ids import SessionId
from hermes.domain.operations import SetAside
from hermes.domain.session.builder import given_up
from hermes.domain.session.protocol import Resume
from hermes.domain.session.state import Session
from hermes.domain.turn.submission import Submission
from hermes.ports.given import Clock
from hermes.ports.hub import Hub
from hermes.ports.storage import Journal
from hermes.ports.supervision import Park, RestartPolicy
from hermes.supervision.crash_log import CrashLog, dead_letter, parking


class SessionCrashes:
    def __init__(self, policy: RestartPolicy, *, journal: Journal, hub: Hub, clock: Clock) -> None:
        self._log = CrashLog(policy)
        self._journal = journal
        self._hub = hub
        self._clock = clock

    def parked(self, session: SessionId) -> str:
        """Return why the session is parked; empty: it is not."""
        return self._log.parked.get(session, "")

    def interruption(self, session: SessionId) -> InterruptionCause:
        """Return what interrupted the open work of a session: a crash of its actor, or of the daemon."""
        died = self._log.has_died(session)
        return InterruptionCause.ACTOR_CRASH if died else InterruptionCause.CRASH

    def pardon(self, head: Session, post: Post) -> bool:
        """Forget the deaths of a parked session if the post resumes it. Otherwise refuse the post."""
        if isinstance(post.event, Resume):
            self._log.pardon(head.id)
            return True
        reason = self._log.parked[head.id]
        fail(post, SessionParkedError(f"{reason}. `hermes resume {head.id}` gives it another chance"))
        return False

    def forget_old(self, now: float) -> None:
        self._log.forget_old(now)

    def judge(self, session: SessionId, died: ActorDied, mail: list[Post]) -> float:
        """Decide after a crash. Return the pause before the session comes back; a parked one only routes its mail.

        The message that killed the session goes first in the mail, or is set aside, or its sender gets the error.
        """
        assert died.cause is not None
        guilty = died.message if isinstance(died.message, Post) else None
        killer = guilty.event.turn if guilty is not None and isinstance(guilty.event, Submission) else None
        judgement = self._log.judge(session, killer, died.cause, self._clock())
        if guilty is not None and killer is None:
            fail(guilty, HermesError(f"session {session} crashed on this request: {died.cause!r}"))
        elif guilty is not None and judgement.set_aside:
            self._set_aside(session, guilty, died.cause)
        elif guilty is not None:
            mail.insert(0, guilty)
        if isinstance(judgement.verdict, Park):
            said, pause_s, log = f"parked: {judgement.verdict.reason}", 0.0, logger.error
            self._publish_parked_turns(session)
        else:
            said, pause_s = f"restart in {judgement.verdict.after_s:.2f} s", judgement.verdict.after_s
            log = logger.warning
        log("session {} crashed ({!r}), {}", session, died.cause, said)
        self._hub.publish(ActorFailed(name=session, problem=repr(died.cause), verdict=said))
        return pause_s

    def _publish_parked_turns(self, session: SessionId) -> None:
        """Publish that the open turns of a parked session are given up, for clients that wait for them."""
        reason = self._log.parked[session]

        def tell(head: Session | None, _: HermesError | None) -> None:
            for event in given_up(head, parking(session, reason)) if head is not None else ():
                self._hub.publish(event)

        self._journal.read(lambda reader: reader.head(session), tell)

    def _set_aside(self, session: SessionId, post: Post, cause: BaseException) -> None:
        """Keep a message that killed its session twice as a dead letter, instead of trying it again."""
        assert isinstance(post.event, Submission)
        letter = dead_letter(session, post.event, cause, self._clock())
        told = SetAsideError(
            f"the message crashed session {session} twice and is kept as dead letter {letter.id}; "
            f"`hermes dead-letters replay {letter.id}` tries it again"
        )
        logger.error("session {}: message {} crashed it twice and is set aside", session, letter.turn)
        self._journal.commit((SetAside(letter=letter),), lambda error: fail(post, error or told))
