"""A shorter transcript that a conversation can go on from. If anything fails, there is none, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from hermes.agent import summary
from hermes.agent.accounting import Price, costed
from hermes.agent.acting import Folders
from hermes.agent.calling import Caller, Listener
from hermes.agent.chat_message import total_tokens
from hermes.agent.compression import FRUITFUL, CompressionSettings, Plan, carried, plan, saved
from hermes.agent.ledger import Ledger
from hermes.ports.agent import Model, ModelRequest, SummaryJob, SummaryReport
from hermes.ports.given import Clock
from hermes.types import EncodedMessage, Failure, Usage
from hermes.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarySettings:
    context_window: int
    compression: CompressionSettings
    model: str = ""  # empty: the conversation's own
    price: Price = Price()
    timeout_s: float = 60.0  # for one summary in all, retries included


@dataclass(frozen=True, slots=True, kw_only=True)
class _Summary:
    text: str
    usage: Usage
    model: str  # empty: none was needed


class Summarising:
    def __init__(self, *, settings: SummarySettings, folders: Folders, ledger: Ledger, clock: Clock) -> None:
        self.settings = settings
        self._folders = folders
        self._ledger = ledger
        self._clock = clock

    async def shorten(self, job: SummaryJob, chain: Sequence[Model], caller: Caller) -> SummaryReport:
        limit_s = self.settings.timeout_s
        try:
            async with asyncio.timeout(limit_s):
                return await self._shorten(job, chain, caller)
        except TimeoutError:
            return SummaryReport(problem=f"the summary took longer than {limit_s:g} s")

    async def _shorten(self, job: SummaryJob, chain: Sequence[Model], caller: Caller) -> SummaryReport:
        settings = self.settings
        planned = await asyncio.to_thread(
            plan,
            job.messages,
            context_window=settings.context_window,
            settings=settings.compression,
            focus=job.focus,
        )
        if planned is None:
            return SummaryReport(problem="there is nothing to gain: what must be kept is nearly all there is")
        made = await self._summary(planned, job, chain, caller)
        if isinstance(made, Failure):
            return SummaryReport(problem=f"the summary failed: {made.message}")
        if planned.middle and not made.text:
            return SummaryReport(problem="the summary was empty")
        messages = await asyncio.to_thread(self._carried, planned, made.text, job)
        if saved(planned.tokens_before, total_tokens(messages)) < FRUITFUL:
            return SummaryReport(problem="it would not have become much shorter")
        return SummaryReport(messages=messages, usage=made.usage, model=made.model)

    def _carried(self, planned: Plan, text: str, job: SummaryJob) -> tuple[EncodedMessage, ...]:
        from hermes.tools.todo import todo_text  # noqa: PLC0415 - in a thread, and not before it is needed

        return carried(planned, text, todo=todo_text(self._folders.of(job.root)), at=self._clock())

    async def _summary(
        self, planned: Plan, job: SummaryJob, chain: Sequence[Model], caller: Caller
    ) -> _Summary | Failure:
        window = self.settings.context_window
        text, usage, name = planned.previous_summary, Usage(), ""
        for part in await asyncio.to_thread(summary.parts, planned, context_window=window):
            messages = summary.summary_request(
                planned,
                part=part,
                previous_summary=text,
                today=datetime.fromtimestamp(self._clock(), UTC).date(),
                context_window=window,
            )
            model = self.settings.model or job.preferences.model
            request = ModelRequest(session=job.session, messages=messages, model=model)
            reply = await caller.ask(chain, request, Listener())
            if isinstance(reply, Failure):
                return reply
            spent = costed(reply.done.usage, self.settings.price)
            self._ledger.add(spent)
            text, usage, name = summary.cleaned(reply.text), usage + spent, reply.done.model
        return _Summary(text=text, usage=usage, model=name)
