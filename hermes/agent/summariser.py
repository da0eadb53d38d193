"""Creates the shortened transcript that a conversation continues from. On failure the old transcript is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from hermes.agent import summary
from hermes.agent.accounting import costed
from hermes.agent.chat_message import total_tokens
from hermes.agent.compression import FRUITFUL, CompressionPlan, CompressionSettings, carried, plan, saved
from hermes.agent.ledger import Ledger
from hermes.agent.models.chain import ModelChain, ReplyListener
from hermes.agent.models.model_set import ModelChoice, ModelSet, ModelTerms
from hermes.agent.tool_step import Folders
from hermes.domain.session.jobs import SummaryJob, SummaryReport
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.turn_failure import Failure
from hermes.domain.turn.usage import Usage
from hermes.domain.values import dataclass
from hermes.ports.agent import Model, ModelRequest
from hermes.ports.given import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarySettings:
    compression: CompressionSettings
    model: str = ""  # empty: the conversation's own
    timeout_s: float = 60.0  # for one summary, including retries
    terms: Callable[[str, str], ModelTerms]  # of a provider's model
    choice: Callable[[str], ModelChoice] = lambda text: ModelChoice(model=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Summary:
    text: str
    usage: Usage
    model: str  # empty: none was needed


class Summariser:
    def __init__(self, *, settings: SummarySettings, folders: Folders, ledger: Ledger, clock: Clock) -> None:
        self.settings = settings
        self._folders = folders
        self._ledger = ledger
        self._clock = clock

    async def shorten(self, job: SummaryJob, models: ModelSet, caller: ModelChain) -> SummaryReport:
        limit_s = self.settings.timeout_s
        try:
            async with asyncio.timeout(limit_s):
                return await self._shorten(job, models, caller)
        except TimeoutError:
            return SummaryReport(problem=f"the summary took longer than {limit_s:g} s")

    async def _shorten(self, job: SummaryJob, models: ModelSet, caller: ModelChain) -> SummaryReport:
        settings = self.settings
        choice = settings.choice(settings.model or job.preferences.model)
        chain = models.chain_for(choice)
        window = settings.terms(chain[0].provider, choice.model or chain[0].name).context_window
        planned = await asyncio.to_thread(
            plan,
            job.messages,
            context_window=window,
            settings=settings.compression,
            focus=job.focus,
        )
        if planned is None:
            return SummaryReport(problem="there is too little to save: nearly everything must be kept")
        made = await self._summary(planned, job, caller, chain=chain, model=choice.model, window=window)
        if isinstance(made, Failure):
            return SummaryReport(problem=f"the summary failed: {made.message}")
        if planned.middle and not made.text:
            return SummaryReport(problem="the summary was empty")
        messages = await asyncio.to_thread(self._carried, planned, made.text, job)
        if saved(planned.tokens_before, total_tokens(messages)) < FRUITFUL:
            return SummaryReport(problem="it would not become much shorter")
        return SummaryReport(messages=messages, usage=made.usage, model=made.model)

    def _carried(self, planned: CompressionPlan, text: str, job: SummaryJob) -> tuple[EncodedMessage, ...]:
        from hermes.tools.todo import todo_text  # noqa: PLC0415 - in a thread, and not before it is needed

        return carried(planned, text, todo=todo_text(self._folders.of(job.root)), at=self._clock())

    async def _summary(
        self,
        planned: CompressionPlan,
        job: SummaryJob,
        caller: ModelChain,
        *,
        chain: Sequence[Model],
        model: str,
        window: int,
    ) -> _Summary | Failure:
        text, usage, name = planned.previous_summary, Usage(), ""
        for part in await asyncio.to_thread(summary.parts, planned, context_window=window):
            messages = summary.summary_request(
                planned,
                part=part,
                previous_summary=text,
                today=datetime.fromtimestamp(self._clock(), UTC).date(),
                context_window=window,
            )
            request = ModelRequest(session=job.session, messages=messages, model=model)
            reply = await caller.ask(chain, request, ReplyListener())
            if isinstance(reply, Failure):
                return reply
            terms = self.settings.terms(reply.reasoning.provider, reply.reasoning.model)
            spent = costed(reply.done.usage, terms.price)
            self._ledger.add(spent)
            text, usage, name = summary.cleaned(reply.text), usage + spent, reply.done.model
        return _Summary(text=text, usage=usage, model=name)
