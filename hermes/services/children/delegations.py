"""Delegation service: waits for the subagents of tool calls, and shows, stops and steers those of a conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from loguru import logger

from hermes.domain.child.child import PREFIX, Assignment, ChildDuty, Purpose, first_turn
from hermes.domain.errors import StorageError
from hermes.domain.events import CallAsked, ChildEnded, Notice, TurnAnswered
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.records import ChildStarted
from hermes.domain.session.protocol import StartBackground
from hermes.domain.session.state import Session
from hermes.domain.turn.usage import Usage
from hermes.ports.children import ChildResult, ChildView, Delegations, Subagents
from hermes.ports.hub import Hub, Subscription
from hermes.ports.storage import Journal
from hermes.services.children.child_service import ChildService
from hermes.services.sessions import SessionService

RETRY_S: Final = 5.0  # after an error of the store
LOOK_S: Final = 60.0  # between two looks at the journal, should an event be missed
SUBAGENTS: Final = (Purpose.DELEGATE, Purpose.BACKGROUND)


class DelegationService(Delegations, Subagents):
    NOTED: Final = (CallAsked,)  # events for `note`

    def __init__(
        self,
        *,
        sessions: SessionService,
        journal: Journal,
        hub: Hub,
        children: ChildService,
        live: Callable[[SessionId], Session | None],
    ) -> None:
        self._live = live  # heads of the sessions in memory
        self._sessions = sessions
        self._journal = journal
        self._hub = hub
        self._children = children

    # ------------------------------------------------------------ the call that waits

    async def results(
        self,
        session: SessionId,
        turn: TurnId,
        children: Sequence[SessionId],
        progress: Callable[[str], None],
    ) -> list[ChildResult]:
        """Errors of the store are waited out: the results must not be lost with one read."""
        while True:
            try:
                started = await self._started(session, turn, children)
                await self._await_ends({each.key: each.child for each in started}, progress)
                return [await self._result(each) for each in started]
            except StorageError as error:
                logger.warning("session {}: the results of subagents are read again: {}", session, error)
                await asyncio.sleep(RETRY_S)

    async def _started(self, session: SessionId, turn: TurnId, children: Sequence[SessionId]) -> list[ChildStarted]:
        records = (each.record for each in await self._sessions.records(session, turn))
        return [each for each in records if isinstance(each, ChildStarted) and each.child in children]

    async def _await_ends(self, left: dict[str, SessionId], progress: Callable[[str], None]) -> None:
        """Wait until the duty of each child has ended. The journal decides, an event only wakes this up."""
        total = len(left)
        feed = self._hub.subscribe(text=False)
        try:
            while left := await self._open(left):
                progress(f"{total - len(left)} of {total} subagents have ended")
                if feed.lagged:
                    feed = self._hub.subscribe(text=False)
                    continue
                await _next_end(feed, set(left.values()))
        finally:
            feed.close()

    async def _open(self, left: dict[str, SessionId]) -> dict[str, SessionId]:
        return await self._journal.fetch(
            lambda reader: {key: child for key, child in left.items() if reader.fact(PREFIX + key) is not None}
        )

    async def _result(self, started: ChildStarted) -> ChildResult:
        heads = await self._sessions.heads([started.child])
        outcome = None
        if (head := heads.get(started.child)) is not None:
            outcome = await self._sessions.outcome(started.child, first_turn(started.key))
        used = Usage() if head is None else head.usage + head.delegated
        if isinstance(outcome, TurnAnswered):
            return ChildResult(child=started.child, number=started.number, text=outcome.text, usage=used)
        problem = "it was not started" if outcome is None else outcome.failure.message
        return ChildResult(child=started.child, number=started.number, problem=problem, usage=used)

    def spent_with(self, session: SessionId, assignment: Assignment | None) -> Usage:
        """Return what a session's family has spent besides it: for a subagent its parent and the others of the call.

        It reads the sessions in memory. Those that ended are counted with the result of the call.
        """
        if assignment is None or assignment.parent is None or assignment.purpose is not Purpose.DELEGATE:
            return Usage()
        family = [duty.child for duty in self._children.duties if duty.parent == assignment.parent]
        found = (self._live(each) for each in (assignment.parent, *family) if each != session)
        total = Usage()
        for head in found:
            if head is not None:
                total += head.usage + head.delegated
        return total

    # ------------------------------------------------------------ for people

    async def listed(self, parent: SessionId) -> list[ChildView]:
        found: list[ChildDuty] = []
        parents = {parent}
        for duty in self._children.duties:
            if duty.purpose in SUBAGENTS and duty.parent in parents:
                found.append(duty)
                parents.add(duty.child)
        heads = await self._sessions.heads([duty.child for duty in found])
        return [ChildView(duty=duty, session=heads.get(duty.child)) for duty in found]

    async def begin(self, session: SessionId, wish: StartBackground) -> Session:
        return await self._sessions.start_background(session, wish)

    async def stop(self, view: ChildView, reason: str) -> None:
        await self._children.end(view.duty, reason)

    def note(self, event: CallAsked) -> None:
        """Tell the parent's watchers that a child asks. Chats get the question itself."""
        duty = next((each for each in self._children.duties if each.child == event.session), None)
        if duty is None or duty.parent is None or duty.purpose not in SUBAGENTS:
            return
        text = f"Subagent {duty.child} asks: {event.summary or event.name}. /approve or /deny answers it."
        turn = duty.turn if duty.call else None
        self._hub.publish(Notice(session=duty.parent, text=text, turn=turn))


async def _next_end(feed: Subscription, children: set[SessionId]) -> None:
    """Wait for the end of one of the children, or for a while."""
    try:
        async with asyncio.timeout(LOOK_S):
            async for event in feed:
                if isinstance(event, ChildEnded) and event.child in children:
                    return
    except TimeoutError:
        return
