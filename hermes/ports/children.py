"""Port of child sessions: what each purpose gives its children to do, and how it reports their end."""

from __future__ import annotations

from typing import Protocol

from hermes.domain.child.child import Assignment, ChildDuty
from hermes.domain.events import TurnOutcome
from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildPlan:
    """Work of a child session."""

    assignment: Assignment
    message: EncodedMessage  # starts its turn


class ChildPurpose(Protocol):
    """Methods of one purpose. They raise HermesErrors only, after which they are called again later."""

    async def plan(self, duty: ChildDuty) -> ChildPlan | None:
        """Return what the child is to do. None: there is nothing to do. Called again after a crash."""

    async def report(self, duty: ChildDuty, outcome: TurnOutcome) -> tuple[OutboxMessage, ...]:
        """Return the messages to send, which are stored with the end of the duty, once.

        Called again after a crash, so it must have no other durable effect.
        """
