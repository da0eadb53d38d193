"""Port of child sessions: what each purpose gives its children to do, how it reports their end, and who waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, Protocol

from hermes.domain.child.child import Assignment, ChildDuty
from hermes.domain.events import TurnOutcome
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.operations import Operation
from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.session.protocol import StartBackground
from hermes.domain.session.state import Session
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Seen
from hermes.domain.turn.usage import Usage
from hermes.domain.values import dataclass

AT_ONCE: Final = 2  # children of all purposes without a group of their own that work at the same time


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildPlan:
    """Work of a child session."""

    assignment: Assignment
    message: EncodedMessage  # starts its turn


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildReport:
    """Everything that is stored with the end of a duty, in one transaction."""

    messages: tuple[OutboxMessage, ...] = ()
    operations: tuple[Operation, ...] = ()  # if one is refused as outdated, the report is made again


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildGroup:
    """Children that wait for one another once `at_once` of them work."""

    name: str
    at_once: int


class Fate(StrEnum):
    """What becomes of a child, as its parent is now."""

    KEEP = "keep"
    END = "end"


SHARED: Final = ChildGroup(name="", at_once=AT_ONCE)


class ChildRequests(Protocol):
    """Starts child sessions that no session's step caused."""

    async def request(self, duty: ChildDuty, *, seen: Seen | None = None) -> bool:
        """Store the duty, and `seen` in the same transaction, then start it.

        Returns False, and starts nothing, if that inbound id was accepted before. Raises StorageErrors.
        """


class ChildPurpose(Protocol):
    """Methods of one purpose. They raise HermesErrors only, after which they are called again later."""

    async def plan(self, duty: ChildDuty) -> ChildPlan | None:
        """Return what the child is to do. None: there is nothing to do. Called again after a crash."""

    async def report(self, duty: ChildDuty, outcome: TurnOutcome) -> tuple[OutboxMessage, ...]:
        """Return the messages to send, which are stored with the end of the duty, once.

        Called again after a crash, so it must have no other durable effect, except one that has an id of its own.
        """

    async def conclude(self, duty: ChildDuty, outcome: TurnOutcome | None) -> ChildReport:
        """Return everything that is stored with the end of the duty. `None`: there was no child session."""
        return ChildReport(messages=() if outcome is None else await self.report(duty, outcome))

    def reported(self, duty: ChildDuty) -> None:  # noqa: ARG002 - the default
        """Note that the report is on disk. Not called again after a crash."""
        return None  # noqa: RET501 - an empty body would make it abstract

    def group(self, duty: ChildDuty) -> ChildGroup:  # noqa: ARG002 - the default
        """Return the children with which this one shares a limit."""
        return SHARED

    async def fate(self, duty: ChildDuty) -> Fate:  # noqa: ARG002 - the default
        """Return what becomes of the child. Asked before it starts, and when its parent's turn or session ends."""
        return Fate.KEEP


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildResult:
    """Result of a subagent."""

    child: SessionId
    number: int
    text: str = ""  # its answer
    problem: str = ""  # not empty: it gave no answer
    usage: Usage = Usage()

    @property
    def tokens(self) -> int:
        return self.usage.prompt_tokens + self.usage.completion_tokens


class Delegations(Protocol):
    """Waits for the subagents of a tool call. Raises HermesErrors only."""

    async def results(
        self,
        session: SessionId,
        turn: TurnId,
        children: Sequence[SessionId],
        progress: Callable[[str], None],
    ) -> list[ChildResult]:
        """Wait until all have ended and return their results, in the order of the tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildView:
    """A subagent of a conversation, as a person sees it."""

    duty: ChildDuty
    session: Session | None  # None: it waits for a place


class Subagents(Protocol):
    """Subagents of a conversation, for its people. Raises HermesErrors only."""

    async def listed(self, parent: SessionId) -> list[ChildView]:
        """Return those that have not ended, and those below them, in the order of their start."""

    async def begin(self, session: SessionId, wish: StartBackground) -> Session:
        """Start one with a person's task. The session remembers it as its last child."""

    async def stop(self, view: ChildView, reason: str) -> None: ...
