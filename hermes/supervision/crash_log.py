"""Crash log of sessions: decides to restart or park a dead session, or to set aside the message that killed it.

Bookkeeping and decisions only; the directory acts on them.
"""

from __future__ import annotations

from hermes.domain.ids import SessionId, TurnId
from hermes.domain.outbox_message import DeadLetter
from hermes.domain.turn.submission import Submission
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.values import dataclass
from hermes.ports.supervision import Park, Restart, RestartPolicy

_KILLS_TO_SET_ASIDE = 2
_REMEMBER_S = 600.0  # deaths and kills count this long


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    verdict: Restart | Park
    set_aside: bool  # the message has killed the session before


class CrashLog:
    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self._deaths: dict[SessionId, tuple[float, ...]] = {}
        self._kills: dict[TurnId, tuple[float, ...]] = {}
        self.parked: dict[SessionId, str] = {}

    def judge(self, session: SessionId, killer: TurnId | None, cause: BaseException, now: float) -> Judgement:
        deaths = self._deaths[session] = (*self._deaths.get(session, ()), now)
        verdict = self._policy(deaths, now)
        if isinstance(verdict, Park):
            self.parked[session] = f"session {session} is parked: {verdict.reason}, the last time by {cause!r}"
        return Judgement(verdict=verdict, set_aside=killer is not None and self._killed_again(killer, now))

    def _killed_again(self, killer: TurnId, now: float) -> bool:
        kills = self._kills[killer] = (*self._kills.get(killer, ()), now)
        if len(kills) < _KILLS_TO_SET_ASIDE:
            return False
        del self._kills[killer]
        return True

    def has_died(self, session: SessionId) -> bool:
        """Return whether it died recently, in this boot."""
        return session in self._deaths

    def pardon(self, session: SessionId) -> None:
        """Forget the deaths of a parked session: an operator resumes it."""
        self.parked.pop(session, None)
        self._deaths.pop(session, None)

    def forget_old(self, now: float) -> None:
        self._deaths = {key: times for key, times in self._deaths.items() if now - times[-1] < _REMEMBER_S}
        self._kills = {key: times for key, times in self._kills.items() if now - times[-1] < _REMEMBER_S}


def parking(session: SessionId, reason: str) -> Failure:
    """Return the failure for a client that waits for a turn of a parked session."""
    message = f"{reason}; the message is kept, and `hermes resume {session}` continues it"
    return Failure(kind=FailureKind.SUSPENDED, message=message)


def dead_letter(session: SessionId, event: Submission, cause: BaseException, now: float) -> DeadLetter:
    return DeadLetter(
        id=event.turn,
        session=session,
        turn=event.turn,
        messages=event.messages,
        source=event.source,
        options=event.options,
        problem=repr(cause),
        at=now,
    )
