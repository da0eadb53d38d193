"""Subagents of tool calls and of `/background`: what they get to do, how long they may live, and their reports.

A subagent of a tool call works for the call: it ends with the parent's turn, unless the parent's session has ended
and `delegation.on_parent_end` detaches its children. Then its answer goes to the parent's chat.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from loguru import logger

from hermes.domain.access.role import Role
from hermes.domain.child.child import Assignment, ChildDuty, Purpose
from hermes.domain.child.task import ChildTask, tasks_of, tools_for
from hermes.domain.errors import AlreadySeenError, BadInputError, HermesError
from hermes.domain.events import PhaseChanged, SessionMoved, TurnAnswered, TurnGaveUp, TurnOutcome
from hermes.domain.history.message_chain import text_and_calls
from hermes.domain.ids import InboundKey, SessionId
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.records import ModelReplied
from hermes.domain.session.builder import encode
from hermes.domain.session.protocol import NotePost
from hermes.domain.session.state import OPEN_PHASES, Phase, Session
from hermes.domain.source import Place, Source
from hermes.domain.text.fence import fenced
from hermes.domain.turn.submission import Busy, Submission
from hermes.domain.values import dataclass
from hermes.ports.children import ChildGroup, ChildPlan, ChildPurpose, Fate
from hermes.ports.given import Clock
from hermes.ports.hub import Hub, Subscription
from hermes.ports.sessions import Sessions
from hermes.system.random_id import new_marker

Offered = Callable[[str, Role, tuple[str, ...] | None], Awaitable[Mapping[str, str]]]  # tools and their toolsets
Share = Callable[[SessionId, SessionId], Awaitable[None]]  # lets a child work in the parent's chosen directory
MAX_REPORT_CHARS: Final = 8_000
LOOK_S: Final = 60.0  # between two looks at the parent, should an event be missed
_ENDS: Final = (TurnAnswered, TurnGaveUp, SessionMoved, PhaseChanged)


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationSettings:
    model: str = ""  # [PROVIDER:]MODEL; empty: that of the parent
    max_iterations: int = 50
    max_concurrent_children: int = 3
    max_spawn_depth: int = 1
    asks: bool = True  # approvals are asked for in the parent's chat; else they are denied
    detach: bool = False  # children go on when the session of their parent ends


class SubagentPurpose(ChildPurpose):
    """What both purposes have in common."""

    def __init__(
        self,
        *,
        sessions: Sessions,
        heads: Callable[[Sequence[SessionId]], Awaitable[dict[SessionId, Session]]],
        clock: Clock,
        settings: Callable[[], DelegationSettings],
        offered: Offered,
        share: Share,
        hub: Hub,
    ) -> None:
        self._sessions = sessions
        self._heads = heads
        self._clock = clock
        self._settings = settings
        self._offered = offered
        self._share = share
        self._hub = hub

    async def _parent(self, duty: ChildDuty) -> Session | None:
        """Return the parent, or where its conversation went on after a compression."""
        if duty.parent is None or duty.parent not in await self._heads([duty.parent]):
            return None
        return await self._sessions.conversation(duty.parent)

    async def _plan(
        self, duty: ChildDuty, parent: Session, task: ChildTask, *, tools: tuple[str, ...], depth: int
    ) -> ChildPlan:
        settings, above = self._settings(), parent.assignment
        await self._share(parent.root or parent.id, duty.child)
        assignment = Assignment(
            purpose=duty.purpose,
            key=duty.key,
            parent=duty.parent,
            turn=duty.turn,
            tools=tools,
            model=task.model or settings.model or parent.preferences.model,
            max_steps=settings.max_iterations,
            asks=settings.asks and (above is None or above.asks),
            asked_in=parent.place if above is None else above.asked_in,
            depth=depth,
        )
        return ChildPlan(assignment=assignment, message=encode(role="user", content=task.message))

    def _note(self, duty: ChildDuty, place: Place, text: str) -> OutboxMessage:
        return OutboxMessage(
            id=duty.fact, kind=OutboxKind.NOTICE, place=place, text=text, at=self._clock(), session=duty.parent
        )


class DelegationPurpose(SubagentPurpose):
    """Subagents that a tool call waits for."""

    def group(self, duty: ChildDuty) -> ChildGroup:
        return ChildGroup(name=f"delegate:{duty.parent}", at_once=self._settings().max_concurrent_children)

    async def fate(self, duty: ChildDuty) -> Fate:
        parent = await self._parent(duty)
        if parent is None:
            return Fate.END
        turn = parent.turn
        if turn is not None and any(duty.child in call.children for call in turn.calls):
            return Fate.KEEP
        return Fate.KEEP if self._is_detached(parent) else Fate.END

    async def plan(self, duty: ChildDuty) -> ChildPlan | None:
        parent = await self._parent(duty)
        task = None if parent is None else await self._task(duty)
        if parent is None or task is None:
            return None
        above = parent.assignment
        depth = 1 + (above.depth if above is not None else 0)
        only = above.tools if above is not None else None
        offered = await self._offered(duty.source.platform, duty.source.standing, only)
        tools = tools_for(task, offered, depth=depth, max_depth=self._settings().max_spawn_depth)
        return await self._plan(duty, parent, task, tools=tools, depth=depth)

    async def report(self, duty: ChildDuty, outcome: TurnOutcome) -> tuple[OutboxMessage, ...]:
        """Return nothing for the call that waits; the answer of a detached child for the parent's chat."""
        parent = await self._parent(duty)
        if parent is None or parent.place is None or not self._is_detached(parent):
            return ()
        return (self._note(duty, parent.place, report_text(duty, outcome)),)

    def _is_detached(self, parent: Session) -> bool:
        return parent.phase is Phase.ENDED and self._settings().detach

    async def _task(self, duty: ChildDuty) -> ChildTask | None:
        """Return the task from the call's arguments in the parent's log."""
        assert duty.parent is not None
        assert duty.turn is not None
        for each in await self._sessions.records(duty.parent, duty.turn):
            if isinstance(each.record, ModelReplied):
                for call in text_and_calls(each.record.message)[1]:
                    if call.get("id") == duty.call:
                        return _task_in(call, duty)
        return None


def _task_in(call: Mapping[str, Any], duty: ChildDuty) -> ChildTask | None:
    try:
        arguments = json.loads(call["function"]["arguments"])
        return tasks_of(arguments)[duty.number]
    except (BadInputError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        logger.error("session {}: the task of child {} cannot be read: {}", duty.parent, duty.child, error)
        return None


class BackgroundPurpose(SubagentPurpose):
    """Subagents that a person starts beside the conversation with `/background`."""

    def group(self, duty: ChildDuty) -> ChildGroup:
        return ChildGroup(name=f"background:{duty.parent}", at_once=self._settings().max_concurrent_children)

    async def fate(self, duty: ChildDuty) -> Fate:
        parent = await self._parent(duty)
        ended = parent is None or (parent.phase is Phase.ENDED and not self._settings().detach)
        return Fate.END if ended else Fate.KEEP

    async def plan(self, duty: ChildDuty) -> ChildPlan | None:
        parent = await self._parent(duty)
        if parent is None:
            return None
        offered = await self._offered(duty.source.platform, duty.source.standing, None)
        tools = tuple(name for name in offered if name != "clarify")  # nobody answers
        return await self._plan(duty, parent, ChildTask(goal=duty.task), tools=tools, depth=0)

    async def report(self, duty: ChildDuty, outcome: TurnOutcome) -> tuple[OutboxMessage, ...]:
        """Report into the chat, where the model sees it with the next turn. Without a chat, the report is a turn."""
        parent = await self._idle_parent(duty)
        if parent is None:
            return ()
        text = report_text(duty, outcome)
        if parent.phase is Phase.ENDED:
            return () if parent.place is None else (self._note(duty, parent.place, text),)
        if parent.place is None:
            await self._submit(duty, parent, text)
            return ()
        wish = NotePost(outgoing=self._note(duty, parent.place, text), shown=_fenced(text))
        try:
            await self._sessions.post(parent.id, wish)
        except AlreadySeenError:  # posted before the daemon was killed
            pass
        except BadInputError:  # suspended
            return (wish.outgoing,)
        return ()

    async def _idle_parent(self, duty: ChildDuty) -> Session | None:
        """Return the parent once it runs no turn."""
        feed = self._hub.subscribe(text=False)
        try:
            while (parent := await self._parent(duty)) is not None and parent.turn is not None:
                if parent.phase not in OPEN_PHASES:  # suspended
                    return parent
                if feed.lagged:
                    feed = self._hub.subscribe(text=False)
                    continue
                await _next_end_of_turn(feed, parent.id)
            return parent
        finally:
            feed.close()

    async def _submit(self, duty: ChildDuty, parent: Session, text: str) -> None:
        told = (
            f"A background task of this conversation has ended.\n{_fenced(text)}\nTell the person about it in short."
        )
        message = encode(role="user", content=told)
        submission = Submission(
            turn=duty.report_turn,
            messages=(message,),
            source=Source(platform=parent.platform, automatic=True, role=duty.source.role),
            session=parent.id,
            inbound=InboundKey(f"report:{duty.key}"),
            fingerprint=b"report",
            busy=Busy.QUEUE,
        )
        try:
            await self._sessions.submit(submission)
        except HermesError as error:
            if not isinstance(error, BadInputError):
                raise
            logger.warning("session {}: the report of child {} was refused: {}", parent.id, duty.child, error)


async def _next_end_of_turn(feed: Subscription, session: SessionId) -> None:
    """Wait until a turn of the session ends, or it moves, or for a while."""
    try:
        async with asyncio.timeout(LOOK_S):
            async for event in feed:
                if isinstance(event, _ENDS) and event.session == session:
                    return
    except TimeoutError:
        return


def _fenced(text: str) -> str:
    """Return a report for the model: it can quote web pages, so it is information and no instruction."""
    return fenced(text, new_marker(), max_chars=len(text))


def report_text(duty: ChildDuty, outcome: TurnOutcome) -> str:
    """Return the report of a child for a person."""
    goal = " ".join(duty.task.split())[:120]
    what = f"The background task “{goal}”" if duty.purpose is Purpose.BACKGROUND else f"Subagent {duty.child}"
    if not isinstance(outcome, TurnAnswered):
        return f"{what} ended without an answer: {outcome.failure.message}"
    text = outcome.text.strip() or "(It had nothing to say.)"
    if len(text) > MAX_REPORT_CHARS:
        text = f"{text[:MAX_REPORT_CHARS]}… (the rest is in session {duty.child})"
    return f"{what} is done:\n\n{text}"
