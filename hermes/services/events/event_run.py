"""Runs without a person's message: what a webhook or BOOT.md starts, and where their reports go.

The whole work of a run is in its duty, so that a daemon that finds the duty after a kill does the same work.
"""

from __future__ import annotations

import json
from typing import Any, Final

from loguru import logger

from hermes.domain.child.child import Assignment, ChildDuty, Purpose
from hermes.domain.errors import BadInputError
from hermes.domain.events import TurnAnswered, TurnOutcome
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.session.builder import encode
from hermes.domain.values import dataclass
from hermes.ports.channels import Channels
from hermes.ports.children import ChildGroup, ChildPlan, ChildPurpose
from hermes.ports.given import Clock

SILENT: Final = "[SILENT]"
_GROUP: Final = ChildGroup(name="events", at_once=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRun:
    """Work of a run, as its duty keeps it."""

    title: str
    prompt: str
    deliver: tuple[str, ...]
    tools: tuple[str, ...]
    model: str = ""
    max_steps: int = 0
    max_tokens: int = 0
    max_usd: float = 0.0
    boot: int = 0  # of which it is a part; 0: of no boot

    def encoded(self) -> str:
        return json.dumps({name: getattr(self, name) for name in self.__slots__}, ensure_ascii=False)


def decode_run(text: str) -> EventRun:
    found: dict[str, Any] = json.loads(text)
    return EventRun(**{**found, "deliver": tuple(found["deliver"]), "tools": tuple(found["tools"])})


class EventRunPurpose(ChildPurpose):
    def __init__(self, purpose: Purpose, *, channels: Channels, clock: Clock, epoch: int) -> None:
        self._purpose = purpose
        self._channels = channels
        self._clock = clock
        self._epoch = epoch

    async def plan(self, duty: ChildDuty) -> ChildPlan | None:
        """Return the work; None for the BOOT.md of an earlier boot, since this one has its own."""
        run = decode_run(duty.work)
        if run.boot not in (0, self._epoch):
            return None
        assignment = Assignment(
            purpose=self._purpose,
            key=duty.key,
            tools=run.tools,
            model=run.model,
            max_steps=run.max_steps,
            max_tokens=run.max_tokens,
            max_usd=run.max_usd,
        )
        return ChildPlan(assignment=assignment, message=encode(role="user", content=run.prompt))

    def group(self, duty: ChildDuty) -> ChildGroup:  # noqa: ARG002 - one limit for all
        return _GROUP

    async def report(self, duty: ChildDuty, outcome: TurnOutcome) -> tuple[OutboxMessage, ...]:
        run = decode_run(duty.work)
        if isinstance(outcome, TurnAnswered):
            text = outcome.text.strip()
            if not text or text.startswith(SILENT) or text.endswith(SILENT):
                return ()
        else:
            text = f"{run.title} failed: {outcome.failure.message}\n`hermes why {duty.child}` explains it."
        found = []
        for target in run.deliver:
            try:
                found += await self._channels.places((target,))
            except BadInputError as error:
                level = "INFO" if error.code == "no_home" else "ERROR"  # a new daemon has no home channel yet
                logger.log(level, "session {}: its report is not sent to {}: {}", duty.child, target, error)
        return tuple(
            OutboxMessage(
                id=f"{duty.fact}:{place.platform}:{place.chat}:{place.thread}",
                kind=OutboxKind.NOTICE,
                place=place,
                text=text,
                at=self._clock(),
                session=duty.child,
                turn=duty.first_turn,
            )
            for place in dict.fromkeys(found)
        )
