"""Child service: starts child sessions from their duties, and reports their end.

A duty is a fact, stored with what caused it. It names the id of its child, so starting it twice starts one session.
It is deleted in the transaction that stores the report. A daemon that is killed in between leaves it to the next one
(`take_up`), which waits for the same child.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

from loguru import logger

from hermes.actors.commit import store
from hermes.domain.child.child import PREFIX, ChildDuty, ChildEnd, Purpose, decode_duty
from hermes.domain.errors import (
    AlreadySeenError,
    BadInputError,
    HermesError,
    SequenceConflictError,
    UnknownSessionError,
)
from hermes.domain.events import ChildEnded, PhaseChanged, TurnAnswered, TurnGaveUp, TurnOutcome
from hermes.domain.ids import SessionId
from hermes.domain.operations import Enqueue, PutFact, See
from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.read.reader import Reader
from hermes.domain.session.state import Phase
from hermes.domain.turn.submission import Seen, Submission
from hermes.ports.children import AT_ONCE, ChildPurpose, ChildReport, ChildRequests, Fate
from hermes.ports.hub import Hub, Subscription
from hermes.ports.metrics import ChildFigures
from hermes.ports.storage import Journal
from hermes.services.sessions import SessionService
from hermes.system.crash_point import reach

RETRY_S: Final = 30.0  # after an error of the store or the directory
LOOK_S: Final = 60.0  # between two looks at the journal, should an event be missed


class ChildService(ChildRequests):
    NOTED: Final = (TurnAnswered, TurnGaveUp, PhaseChanged)  # events for `note`

    def __init__(
        self,
        *,
        sessions: SessionService,
        journal: Journal,
        hub: Hub,
        deliver: Callable[[Sequence[OutboxMessage]], None],
        at_once: int = AT_ONCE,
    ) -> None:
        self._sessions = sessions
        self._journal = journal
        self._hub = hub
        self._deliver = deliver
        self._purposes: dict[Purpose, ChildPurpose] = {}
        self._slots = asyncio.Semaphore(at_once)  # of the children without a group of their own
        self._groups: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._duties: dict[str, ChildDuty] = {}  # of `_tasks`
        self._checks: set[asyncio.Task[None]] = set()
        self._lanes: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._working = 0
        self._ended: Counter[tuple[Purpose, ChildEnd]] = Counter()
        self._closed = False
        self._resumes = False

    def register(self, purpose: Purpose, methods: ChildPurpose) -> None:
        self._purposes[purpose] = methods

    def figures(self) -> ChildFigures:
        waiting = len(self._tasks) - self._working
        return ChildFigures(working=self._working, waiting=waiting, ended=dict(self._ended))

    # ------------------------------------------------------------ duties

    async def request(self, duty: ChildDuty, *, seen: Seen | None = None) -> bool:
        """Start a child session that no session's step caused. The same duty again starts no other one.

        `seen` is stored in the same transaction. Returns False, and starts nothing, if it was accepted before.
        """
        inbound = () if seen is None else (See(seen=seen),)
        try:
            await store(self._journal, (*inbound, PutFact(name=duty.fact, value=duty.encoded())))
        except AlreadySeenError:
            return False
        reach("child: requested")
        self.start((duty,))
        return True

    def start(self, duties: Sequence[ChildDuty]) -> None:
        """Start children whose duties are on disk."""
        for duty in duties:
            if duty.key not in self._tasks and not self._closed:
                task = asyncio.create_task(self._fulfil(duty), name=f"child session {duty.child}")
                self._tasks[duty.key] = task
                self._duties[duty.key] = duty
                task.add_done_callback(partial(self._forget, duty.key))

    def _forget(self, key: str, _: asyncio.Task[None]) -> None:
        self._tasks.pop(key, None)
        self._duties.pop(key, None)

    @property
    def duties(self) -> tuple[ChildDuty, ...]:
        """Return the duties that this daemon knows to be open."""
        return tuple(self._duties.values())

    def note(self, event: TurnAnswered | TurnGaveUp | PhaseChanged) -> None:
        """Take notice of a live event: children whose parent's turn or session ends may have to end, too."""
        if self._closed:
            return
        if isinstance(event, PhaseChanged) and event.phase is not Phase.ENDED:
            return
        ended = isinstance(event, PhaseChanged)
        if duties := tuple(duty for duty in self.duties if self._concerns(event.session, duty, ended=ended)):
            check = asyncio.create_task(self._check(duties), name=f"children of {event.session}")
            self._checks.add(check)
            check.add_done_callback(self._checks.discard)

    def _concerns(self, session: SessionId, duty: ChildDuty, *, ended: bool) -> bool:
        """Return whether the end of a session, or else of a turn in it, may end a child.

        The session may continue the parent after a compression. Only an end is rare enough to look at all of them.
        """
        is_child = any(each.child == session for each in self._duties.values())
        return duty.parent == session or (ended and not is_child and duty.parent is not None)

    async def _check(self, duties: Sequence[ChildDuty]) -> None:
        """End the children that must not outlive what their parent does."""
        for duty in duties:
            try:
                await self._check_one(duty)
            except HermesError as error:
                logger.warning("children: could not decide about {}: {}", duty.fact, error)

    async def _check_one(self, duty: ChildDuty) -> None:
        methods = self._purposes.get(duty.purpose)
        if methods is not None and await methods.fate(duty) is Fate.END:
            await self.end(duty, "its parent does not wait for it any more")

    async def end(self, duty: ChildDuty, reason: str) -> None:
        """End a child's session and its work. One that has not started is not started any more."""
        with suppress(BadInputError, UnknownSessionError):  # it has ended, or has not started
            await self._sessions.end(duty.child, reason)

    def take_up(self, *, held: bool = False) -> None:
        """Start what an earlier daemon left to do. `held`: also turns that wait because of a boot loop."""
        self._resumes = held
        self._journal.read(_read_duties, self._on_duties)

    def _on_duties(self, found: list[ChildDuty] | None, error: HermesError | None) -> None:
        if error is not None:
            logger.warning("children: could not read the duties of an earlier daemon: {}", error)
        self.start(found or ())

    async def close(self) -> None:
        """Stop waiting for children. Their sessions, and the next daemon, continue."""
        self._closed = True
        tasks = [*self._tasks.values(), *self._checks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ------------------------------------------------------------ one child

    async def _fulfil(self, duty: ChildDuty) -> None:
        """Start the child, wait for its end and report it. Errors of the store are waited out."""
        methods = self._purposes.get(duty.purpose)
        if methods is None:
            logger.warning("children: {} is left to do, nothing here is made for it", duty.fact)
            return
        while not await self._try(duty, methods):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(RETRY_S)

    async def _try(self, duty: ChildDuty, methods: ChildPurpose) -> bool:
        lane = self._lanes.setdefault(duty.lane, asyncio.Lock())
        async with lane, self._slots_of(duty, methods):
            self._working += 1
            try:
                await self._carry_out(duty, methods)
            except HermesError as error:
                logger.warning("children: {} is tried again: {}", duty.fact, error)
                return False
            finally:
                self._working -= 1
        return True

    def _slots_of(self, duty: ChildDuty, methods: ChildPurpose) -> asyncio.Semaphore:
        group = methods.group(duty)
        return self._groups.setdefault(group.name, asyncio.Semaphore(group.at_once)) if group.name else self._slots

    async def _carry_out(self, duty: ChildDuty, methods: ChildPurpose) -> None:
        reach("child: about to start")
        wanted = await methods.fate(duty) is Fate.KEEP
        if not await self._is_started(duty):
            wanted = wanted and await self._is_open(duty)
            if not wanted or not await self._start(duty, methods):
                await self._end(duty, ChildEnd.SKIPPED, partial(methods.conclude, duty, None))
                methods.reported(duty)
                return
            wanted = await methods.fate(duty) is Fate.KEEP  # its parent may have ended meanwhile
        elif wanted and self._resumes:
            await self._resume(duty)
        if not wanted:
            await self.end(duty, "its parent does not wait for it any more")
        reach("child: started")
        outcome = await self._outcome(duty)
        reach("child: about to report")
        end = ChildEnd.DONE if isinstance(outcome, TurnAnswered) else ChildEnd.FAILED
        await self._end(duty, end, partial(methods.conclude, duty, outcome))
        reach("child: reported")
        methods.reported(duty)

    async def _is_started(self, duty: ChildDuty) -> bool:
        return duty.child in await self._sessions.heads([duty.child])

    async def _resume(self, duty: ChildDuty) -> None:
        """Continue a turn that waits for a message: nobody writes to a child."""
        head = (await self._sessions.heads([duty.child])).get(duty.child)
        if head is not None and head.phase is Phase.RESUME_PENDING:
            with suppress(BadInputError, UnknownSessionError):  # it has continued or ended meanwhile
                await self._sessions.resume(duty.child, "the boot loop is over")

    async def _is_open(self, duty: ChildDuty) -> bool:
        """Return whether the duty is on disk. It goes with its child when that is deleted."""
        return await self._journal.fetch(lambda reader: reader.fact(duty.fact)) is not None

    async def _start(self, duty: ChildDuty, methods: ChildPurpose) -> bool:
        """Start the session. Returns False if there is nothing to do."""
        plan = await methods.plan(duty)
        if plan is None:
            return False
        await self._sessions.submit(
            Submission(
                turn=duty.first_turn,
                messages=(plan.message,),
                source=duty.source,
                session=duty.child,
                assignment=plan.assignment,
            )
        )
        logger.info("session {}: child {} started, {}", duty.parent or "-", duty.child, duty.purpose)
        return True

    async def _outcome(self, duty: ChildDuty) -> TurnOutcome:
        """Return the outcome of the child's turn, when there is one."""
        feed = self._hub.subscribe(turn=duty.first_turn, text=False)
        try:
            while (outcome := await self._sessions.outcome(duty.child, duty.first_turn)) is None:
                if feed.lagged:
                    feed = self._hub.subscribe(turn=duty.first_turn, text=False)
                if not await _next_end(feed):
                    await self._check_one(duty)  # the event that ends it may have been missed, too
            return outcome
        finally:
            feed.close()

    async def _end(self, duty: ChildDuty, end: ChildEnd, make_report: Callable[[], Awaitable[ChildReport]]) -> None:
        """Store the report and the end of the duty in one transaction."""
        stored = False
        while not stored:
            report = await make_report()
            enqueued = (Enqueue(outgoing=message) for message in report.messages)
            over = PutFact(name=duty.fact, value=None)
            try:
                await store(self._journal, (over, *report.operations, *enqueued))
                stored = True
            except SequenceConflictError:  # what it reports on has changed meanwhile
                logger.debug("children: the report of {} is made again", duty.fact)
        self._deliver(report.messages)
        self._ended[duty.purpose, end] += 1
        logger.info("session {}: child {} ended, {}: {}", duty.parent or "-", duty.child, duty.purpose, end)
        self._hub.publish(ChildEnded(session=duty.parent, child=duty.child, purpose=duty.purpose, end=end))


async def _next_end(feed: Subscription) -> bool:
    """Wait for the next end of the turn, or for a while. Return whether there was an event."""
    try:
        async with asyncio.timeout(LOOK_S):
            async for event in feed:
                if isinstance(event, TurnAnswered | TurnGaveUp):
                    return True
    except TimeoutError:
        return False
    return True


def _read_duties(reader: Reader) -> list[ChildDuty]:
    found = []
    for name in reader.facts(PREFIX):
        try:
            found.append(decode_duty(name, reader.fact(name) or b""))
        except ValueError as error:
            logger.error("children: {}", error)
    return found
