"""Reset scheduler: finds due sessions a few times a minute, and asks them to reset or to note what blocks that.

It decides on stored state and the last heartbeats. The session decides again, so a message in between prevents the
reset. After a change of the policy a review goes through all sessions, a slice at a time, and stores new due times.
A finished review is not repeated at the next start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from loguru import logger

from hermes.actors.kernel.actor import LoopActor
from hermes.actors.kernel.future import LoopFuture
from hermes.actors.kernel.ref import ActorDeadError, ActorRef
from hermes.actors.reset.reset_rules import ResetRules
from hermes.actors.session.session_mail import Post
from hermes.domain.errors import HermesError, SequenceConflictError, UnknownSessionError
from hermes.domain.ids import SessionId
from hermes.domain.operations import PutFact, Restore, SetDue
from hermes.domain.read.lineage import Address, Route, find_route
from hermes.domain.read.reader import Due as Place
from hermes.domain.read.reader import Reader
from hermes.domain.reset_policy import Blocked, Keep, Later
from hermes.domain.reset_policy import ResetDue as Due
from hermes.domain.session.protocol import NoteBlocked, ResetSession
from hermes.domain.session.state import Phase, Session, is_pending
from hermes.domain.values import dataclass
from hermes.ports.given import Clock
from hermes.ports.storage import Journal

EVERY_S = 20.0
PAGE = 256  # due sessions in one read
SLICE = 200  # sessions in one slice of a review
REVIEWED = "reset.policy"  # fact: the policy under which all due times were stored
_UNDER_WAY = b"?"
_MICROSECOND = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Message to itself: check for due sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChanged:
    """Message of the daemon: the policy may have changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Message to itself: due sessions, and where the next page begins. `number` is that of the read."""

    number: int
    routes: tuple[Route, ...]
    last: Place | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answered:
    """Message to itself: a session's answer to ResetSession or NoteBlocked."""

    session: SessionId
    decision: Due | Blocked
    after: Session | None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reviewed:
    """Message to itself: the policy of the last finished review."""

    policy: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slice:
    """Message to itself: stored sessions with their due times. `number` is that of the review."""

    number: int
    heads: tuple[tuple[Session, float | None], ...]
    ahead_of: float | None
    gone: bool = False  # the session it continues after was deleted


class ResetClock(LoopActor):
    kind = "reset_clock"

    def __init__(
        self,
        *,
        rules: ResetRules,
        journal: Journal,
        directory: Callable[[], ActorRef[Any]],
        clock: Clock,
        every_s: float = EVERY_S,
    ) -> None:
        super().__init__()
        self._rules = rules
        self._journal = journal
        self._directory = directory
        self._clock = clock
        self._every_s = every_s
        self._asked: set[SessionId] = set()
        self._reads = 0  # only the latest continues with its next page
        self._next_page: Place | None = None
        self._review = 0  # its number; the latest counts

    def on_start(self) -> None:
        self.tell_later(self._every_s / 2, Tick())  # wait for heartbeats of processes that outlived the last daemon
        self._find_reviewed()

    def on_receive(self, message: object) -> None:
        match message:
            case Tick():
                self._tick()
            case _Found():
                self._on_found(message)
            case _Answered():
                self._on_answered(message)
            case PolicyChanged():
                self._find_reviewed()
            case _Reviewed():
                self._on_reviewed(message.policy)
            case _Slice():
                self._on_slice(message)
            case HermesError():
                raise message
            case _:
                super().on_receive(message)

    # ------------------------------------------------------------ what is due

    def _tick(self) -> None:
        self.tell_later(self._every_s, Tick())
        by_s = self._rules.look_at_the_clock()
        if not self._rules.unsettled:
            self._read_due_page(None)
            return
        what = f"the clock was set by {by_s:+.0f} s, or the machine slept" if by_s else "the daemon was paused"
        logger.info("{}: resets wait for the next heartbeats", what)
        if by_s < 0:
            self._begin_review(ahead_of=self._clock())

    def _read_due_page(self, after: Place | None) -> None:
        now = self._clock()
        self._reads += 1
        number = self._reads

        def query(reader: Reader) -> _Found:
            places = reader.due(now, PAGE, after)
            routes = tuple(find_route(reader, Address(session=session, exact=True)) for _, session in places)
            return _Found(number=number, routes=routes, last=places[-1] if len(places) == PAGE else None)

        self._journal.read(query, lambda found, error: self.tell_self(error or found))

    def _on_found(self, found: _Found) -> None:
        for route in found.routes:
            for head in route.damaged:
                self._restore_row(head)
            if route.head is not None and not route.damaged and route.head.id not in self._asked:
                self._act_on_due(route.head)
        if found.number == self._reads:  # a slow earlier read does not move the page
            self._next_page = found.last
            self._read_next_page()

    def _read_next_page(self) -> None:
        """Read the next page when most sessions of this one have answered."""
        if self._next_page is not None and len(self._asked) < PAGE // 2:
            after, self._next_page = self._next_page, None
            self._read_due_page(after)

    def _restore_row(self, head: Session) -> None:
        restore = Restore(
            head=head, epoch=self._journal.epoch, pending=is_pending(head), due=self._rules.due(head, self._clock())
        )
        self._journal.commit((restore,), lambda error: _log_refusal(head.id, error))

    def _act_on_due(self, head: Session) -> None:
        decision = self._rules.judge(head, self._clock())
        match decision:
            case _ if head.phase != Phase.IDLE or isinstance(decision, Keep):
                self._set_due(head)
            case Later():
                pass
            case Blocked():
                by = tuple(process.id for process in decision.by)
                if by != head.blocked_by:
                    self._request(
                        head, decision, NoteBlocked(by=by, reason=decision.reason, active_at=head.active_at)
                    )
            case Due():
                self._request(head, decision, self._rules.reset_of(head, decision))

    def _set_due(self, head: Session) -> None:
        wish = SetDue(session=head.id, expected_seq=head.next_seq, due=self._rules.due(head, self._clock()))
        self._journal.commit((wish,), lambda error: _log_refusal(head.id, error))

    def _request(self, head: Session, decision: Due | Blocked, event: ResetSession | NoteBlocked) -> None:
        post = Post(event=event, address=Address(session=head.id, exact=True))
        try:
            answer = cast("LoopFuture", self._directory().ask(post, block=False))
        except ActorDeadError:  # restarting; the session is still due at the next tick
            return
        self._asked.add(head.id)
        answer.watch(lambda settled: self.tell_self(_answered(head.id, decision, settled)))

    def _on_answered(self, answered: _Answered) -> None:
        self._asked.discard(answered.session)
        after, decision = answered.after, answered.decision
        if after is None:
            logger.warning("session {}: {}; a due reset waits", answered.session, answered.problem)
        elif isinstance(decision, Blocked) and after.blocked_by == tuple(each.id for each in decision.by):
            logger.info("session {}: the reset is blocked: {}", after.id, decision.reason)
        self._read_next_page()

    # ------------------------------------------------------------ sessions of another policy

    def _find_reviewed(self) -> None:
        self._journal.read(
            lambda reader: _Reviewed(policy=reader.fact(REVIEWED) or b""),
            lambda reviewed, error: self.tell_self(error or reviewed),
        )

    def _on_reviewed(self, policy: bytes) -> None:
        wanted = self._rules.fingerprint.encode()
        if policy == wanted:
            return
        if not wanted:  # stored due times are dropped when they come
            self._review += 1
            self._store_reviewed_policy(b"")
            return
        logger.info("the reset policy has changed: due times of all sessions are calculated again")
        self._store_reviewed_policy(_UNDER_WAY)
        self._begin_review(ahead_of=None)

    def _store_reviewed_policy(self, policy: bytes) -> None:
        fact = PutFact(name=REVIEWED, value=policy or None)
        self._journal.commit((fact,), lambda error: _log_refusal("the reset policy", error))

    def _begin_review(self, ahead_of: float | None) -> None:
        """Review all sessions, or only those active after `ahead_of`, which come first."""
        self._review += 1
        self._read_slice(None, ahead_of)

    def _read_slice(self, after: SessionId | None, ahead_of: float | None) -> None:
        number = self._review

        def query(reader: Reader) -> _Slice:
            try:
                heads = reader.recent(SLICE, after)
            except UnknownSessionError:  # it was deleted meanwhile
                return _Slice(number=number, heads=(), ahead_of=ahead_of, gone=True)
            found = tuple((head, reader.due_at(head.id)) for head in heads)
            return _Slice(number=number, heads=found, ahead_of=ahead_of)

        self._journal.read(query, lambda found, error: self.tell_self(error or found))

    def _on_slice(self, found: _Slice) -> None:
        if found.number != self._review:
            return
        if found.gone:
            self._read_slice(None, found.ahead_of)
            return
        now = self._clock()
        for head, due in found.heads:
            if not _same(due, self._rules.due(head, now)):
                self._set_due(head)
        enough = found.ahead_of is not None and any(head.active_at <= found.ahead_of for head, _ in found.heads)
        if len(found.heads) == SLICE and not enough:
            self._read_slice(found.heads[-1][0].id, found.ahead_of)
        elif found.ahead_of is None:
            self._store_reviewed_policy(self._rules.fingerprint.encode())


def _answered(session: SessionId, decision: Due | Blocked, settled: LoopFuture) -> _Answered:
    try:
        return _Answered(session=session, decision=decision, after=settled.get())
    except (HermesError, ActorDeadError) as error:
        return _Answered(session=session, decision=decision, after=None, problem=str(error))


def _same(stored: float | None, wanted: float | None) -> bool:
    if stored is None or wanted is None:
        return stored is wanted
    return abs(stored - wanted) <= _MICROSECOND


def _log_refusal(what: str, error: HermesError | None) -> None:
    """Log a failed write. A session that was written meanwhile has stored its own due time."""
    if error is not None and not isinstance(error, SequenceConflictError | UnknownSessionError):
        logger.warning("could not store the due time of {}: {}", what, error)
