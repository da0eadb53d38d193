"""Model call without a session: no tools, and nothing is stored but its usage."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping

from hermes.domain.ids import SessionId, TurnId
from hermes.domain.operations import Tally
from hermes.domain.session.jobs import ModelJob, ModelReport, RetryReport
from hermes.domain.session.state import Preferences
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.tally import day_of
from hermes.ports.agent import Agent
from hermes.ports.given import Clock

_PROMPT = EncodedMessage(b'{"role":"system","content":"Answer exactly in the form that is asked for."}')
_NO_TOOLS: Mapping[str, list[str]] = {"server_tools": []}


class SideCompletion:
    def __init__(self, *, agent: Agent, count: Callable[[Tally], Awaitable[None]], clock: Clock) -> None:
        self._agent = agent
        self._count = count
        self._clock = clock

    async def complete(
        self,
        turn: TurnId,
        messages: tuple[EncodedMessage, ...],
        instructions: EncodedMessage,
        *,
        options: bytes,
        source: Source,
        model: str = "",
    ) -> ModelReport:
        """Return the model's answer, or its failure. Without `model`, the configured one is asked."""
        job = ModelJob(
            session=SessionId(f"side:{turn}"),
            root=SessionId(f"side:{turn}"),
            turn=turn,
            attempt=1,
            replies=0,
            messages=messages,
            options=json.dumps({**json.loads(options), "hermes": _NO_TOOLS}, ensure_ascii=False).encode(),
            prompt=instructions or _PROMPT,
            platform=source.platform,
            role=source.standing,
            by=source.by,
            preferences=Preferences(model=model),
        )
        report = await self._answer(job)
        usage = Tally(
            day=day_of(self._clock()), model=report.model[:80], platform=source.platform[:80], usage=report.usage
        )
        if report.failure is None:
            await self._count(usage)
        return report

    async def _answer(self, job: ModelJob) -> ModelReport:
        done: asyncio.Future[ModelReport] = asyncio.get_running_loop().create_future()

        def heard(report: ModelReport | RetryReport) -> None:
            if isinstance(report, ModelReport) and not done.done():
                done.set_result(report)

        work = self._agent.think(job, heard)
        try:
            return await done
        except asyncio.CancelledError:
            work.cancel()
            raise
