"""Reset policy in force, applied to one session: when to check it, what is due, and an explanation.

Sessions, the reset scheduler and `why` share one object, so they never disagree. It reads memory only. A person who
resumes a session has GRACE_S to write before it can be reset again. Only a person's message restarts the idle time.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from math import isinf

from hermes.domain.access.api_key import surface_of
from hermes.domain.ids import SessionKey
from hermes.domain.process.process_record import Heartbeat, ProcessView
from hermes.domain.process.staleness import StalenessSettings, lasting
from hermes.domain.process.staleness import explain as explain_process
from hermes.domain.reset_policy import (
    Blocked,
    Decision,
    Keep,
    Later,
    OnStale,
    PolicyBook,
    ResetMode,
    ResetPolicy,
    SessionFacts,
    clock_was_set,
    evaluate,
)
from hermes.domain.reset_policy import ResetDue as Due
from hermes.domain.session.protocol import ResetSession
from hermes.domain.session.state import Phase, Session, is_pending, root_of
from hermes.domain.values import dataclass
from hermes.ports.given import Clock
from hermes.ports.processes import HeartbeatReceiver

GRACE_S = 1800.0  # after a person resumed a session
LATE_S = 25.0  # between two clock checks, which come every 20 s; less than what makes a heartbeat stale


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetSettings:
    book: PolicyBook = PolicyBook()
    zone: tzinfo = UTC
    staleness: StalenessSettings = StalenessSettings()


class ResetRules:
    def __init__(
        self, settings: ResetSettings, *, processes: HeartbeatReceiver, clock: Clock, steady: Clock, pulse: Clock
    ) -> None:
        self.settings = settings  # can change at any time
        self._processes = processes
        self._clock = clock
        self._steady = steady  # monotonic
        self._pulse = pulse  # monotonic time of this process: shows whether it was paused
        self._last = clock(), steady(), pulse()
        self.unsettled = False  # heartbeats are older than a clock change or a pause

    def look_at_the_clock(self) -> float:
        """Return by how many seconds the clock was set since the last check, or 0. Call this regularly."""
        by_s = self._set_by(self._clock())
        self.unsettled = by_s != 0 or self._held_up()
        self._last = self._clock(), self._steady(), self._pulse()
        return by_s

    def _set_by(self, now: float) -> float:
        wall_s, elapsed_s = now - self._last[0], self._steady() - self._last[1]
        return wall_s - elapsed_s if clock_was_set(wall_s, elapsed_s) else 0.0

    def _held_up(self) -> bool:
        """Return whether the daemon was paused. Then missing heartbeats say nothing about processes."""
        return self._pulse() - self._last[2] > LATE_S

    @property
    def fingerprint(self) -> str:
        """Return a text that changes with the policy: sessions need a new due time then. Empty: no resets."""
        book = self.settings.book
        policies = [("", "", book.default)]
        policies += [("platform", name, policy) for name, policy in sorted(book.by_platform.items())]
        policies += [("type", name, policy) for name, policy in sorted(book.by_type.items())]
        if all(policy.mode == ResetMode.NONE for _, _, policy in policies):
            return ""
        rules = [f"{kind} {name} {each.mode} {each.idle_minutes} {each.at_hour}" for kind, name, each in policies]
        return "\n".join([str(self.settings.zone), *rules])

    def policy(self, session: Session) -> ResetPolicy:
        return self.settings.book.for_session(surface_of(session.platform), chat_type(session.key))

    def due(self, session: Session, now: float) -> float | None:
        """Return when to check the session for a reset. None: never, or its next record says when."""
        if session.phase != Phase.IDLE or is_pending(session) or session.assignment is not None:
            return None
        decision = self._decide(session, (), now)
        if not isinstance(decision, Keep):
            return now
        return None if isinf(decision.next_check) else decision.next_check

    def receive(self, heartbeat: Heartbeat) -> None:
        """Keep a heartbeat of a background process: resets are judged on the last one."""
        self._processes.receive(heartbeat)

    def judge(self, session: Session, now: float) -> Decision:
        return self._decide(session, self._processes.views(root_of(session)), now)

    def reset_now(self, session: Session, now: float) -> ResetSession | None:
        """Return the reset that goes before a message which has just arrived. None: none is due."""
        if session.phase != Phase.IDLE or is_pending(session):
            return None
        decision = self.judge(session, now)
        unsettled = self.unsettled or self._set_by(now) or self._held_up()
        if not isinstance(decision, Due) or (decision.stale and unsettled):
            return None
        return self.reset_of(session, decision)

    def reset_of(self, session: Session, due: Due) -> ResetSession:
        policy = self.policy(session)
        ended = tuple(process.id for process in due.stale) if policy.on_stale == OnStale.END else ()
        left = _left(due, ended=bool(ended)) if due.stale else ""
        notice = _notice(session, due, left, ended=bool(ended)) if policy.notifies(session.platform) else ""
        return ResetSession(reason=due.reason, active_at=session.active_at, notice=notice, left=left, end=ended)

    def _decide(self, session: Session, processes: tuple[ProcessView, ...], now: float) -> Decision:
        facts = SessionFacts(
            active_at=session.active_at,
            busy=is_pending(session),
            asks=session.phase == Phase.WAITING,
            has_messages=session.messages > 0,
        )
        decision = evaluate(
            self.policy(session), facts, processes, settings=self.settings.staleness, zone=self.settings.zone, now=now
        )
        until = session.taken_up_at + GRACE_S
        if isinstance(decision, Blocked | Due) and now < until <= now + GRACE_S:
            reason = f"{decision.reason}, but a person resumed it and has {lasting(GRACE_S)} to write"
            return Keep(next_check=until, reason=reason)
        return decision

    # ------------------------------------------------------------ in words

    def explain(self, session: Session) -> str:
        """Return the policy in force, the next due time, what blocks the reset, and the background processes."""
        now, policy = self._clock(), self.policy(session)
        closed = session.phase in (Phase.SUSPENDED, Phase.ENDED)
        processes = [each for each in self._processes.views(root_of(session)) if each.ended_at is None]
        own = [each for each in processes if not closed or each.session == session.id]
        lines = [f"{each.id}: {explain_process(each, self.settings.staleness, now)}" for each in own]
        if closed:
            return "\n".join(["Processes it left running:", *lines]) if lines else ""
        if policy.mode == ResetMode.NONE:
            return "\n".join([f"Automatic resets are off here{self._whose(session)}.", *lines])
        rule = f"It is reset {_in_words(policy)}{self._whose(session)}."
        return "\n".join([f"{rule} {self._outlook(self.judge(session, now), now)}", *lines])

    def _whose(self, session: Session) -> str:
        where = self.settings.book.rule_for(surface_of(session.platform), chat_type(session.key))
        return f" (session_reset.overrides, {where})" if where else ""

    def _outlook(self, decision: Decision, now: float) -> str:
        match decision:
            case Keep() if isinf(decision.next_check):
                return f"None is due: {decision.reason}."
            case Keep():
                at = datetime.fromtimestamp(decision.next_check, self.settings.zone)
                utc = f" ({at.astimezone(UTC):%H:%M} UTC)" if at.utcoffset() else ""  # as other times are
                left = lasting(decision.next_check - now)
                return f"The next one is due {at:%Y-%m-%d %H:%M %Z}{utc}, in {left}: {decision.reason}."
            case Later():
                return f"One is due: {decision.reason}."
            case Blocked():
                return f"One is due and blocked: {decision.reason}."
            case Due():
                return f"One is due and comes within a minute: {decision.reason}."


def chat_type(key: SessionKey) -> str:
    """Return the fourth part of `agent:main:<platform>:<type>:<chat>`."""
    parts = key.split(":", 4)
    return parts[3] if len(parts) > 3 else ""


def _notice(session: Session, due: Due, left: str, *, ended: bool) -> str:
    text = (
        f"The conversation was reset: {due.reason}. Your next message starts a new one; "
        f"/resume {session.id} brings the earlier one back."
    )
    advice = " /processes kill ID ends one." if left and not ended else ""
    return f"{text} {left}{advice}" if left else text


def _left(due: Due, *, ended: bool) -> str:
    names = ", ".join(f"{process.id}: {process.command} (pid {process.pid})" for process in due.stale)
    if ended:
        return f"Inactive background processes were ended: {names}."
    return f"Inactive background processes still run: {names}."


def _in_words(policy: ResetPolicy) -> str:
    idle = f"after {lasting(policy.idle_minutes * 60)} without a person's message"
    daily = f"daily at {policy.at_hour}:00"
    return {ResetMode.IDLE: idle, ResetMode.DAILY: daily}.get(policy.mode, f"{idle}, and {daily}")
