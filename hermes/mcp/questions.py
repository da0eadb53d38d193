"""Durable questions of MCP servers: stored, announced to the person, and answered with a command.

The tool call that caused a question waits for the answer. After a crash that call has no recorded outcome; the
question and a later answer stay. When the model repeats the call and the server asks the same, it gets the answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from loguru import logger

from hermes.domain.errors import BadInputError
from hermes.domain.mcp.mcp_question import (
    FACT,
    KEEP_S,
    McpQuestion,
    QuestionState,
    decode,
    encode,
    in_words,
    make_question,
    read_answer,
)
from hermes.domain.values import replace
from hermes.ports.given import Clock

MAX_OPEN = 32


class FactStore(Protocol):
    """Small durable values by name."""

    async def fact(self, name: str) -> bytes | None: ...
    async def remember(self, name: str, value: bytes | None) -> None: ...
    async def facts(self, prefix: str) -> Sequence[str]: ...


class McpQuestions:
    def __init__(
        self, facts: FactStore, clock: Clock, announce: Callable[[McpQuestion, str], Awaitable[None]]
    ) -> None:
        self._facts = facts
        self._clock = clock
        self._announce = announce
        self._waiting: dict[str, asyncio.Future[McpQuestion]] = {}

    async def ask(
        self, *, session: str, server: str, message: str, schema: Mapping[str, Any] | None, url: str
    ) -> McpQuestion:
        """Store a question, tell the person, and wait for the answer."""
        question = make_question(
            session=session, server=server, message=message, schema=schema, url=url, now=self._clock()
        )
        known = decode(await self._facts.fact(FACT + question.id))
        if known is not None and known.state in (QuestionState.ANSWERED, QuestionState.DECLINED):
            return await self._use(known)
        if question.id in self._waiting or len(self._waiting) >= MAX_OPEN:
            raise BadInputError("the same question, or too many others, already wait for an answer")
        waiting: asyncio.Future[McpQuestion] = asyncio.get_running_loop().create_future()
        self._waiting[question.id] = waiting
        try:
            await self._facts.remember(FACT + question.id, encode(question))
            logger.info("mcp {}: asks question {} in session {}", server, question.id, session)
            await self._announce(question, in_words(question))
            return await self._use(await waiting)
        finally:
            del self._waiting[question.id]

    async def _use(self, question: McpQuestion) -> McpQuestion:
        """Return an answer, and store that it is used: the next question like it is asked again."""
        await self._facts.remember(FACT + question.id, encode(replace(question, state=QuestionState.USED)))
        return question

    async def get(self, name: str) -> McpQuestion:
        question = decode(await self._facts.fact(FACT + name))
        if question is None:
            raise BadInputError(f"there is no question {name[:40]}", param="id", code="unknown_question")
        return question

    async def answer(self, name: str, text: str | None) -> McpQuestion:
        """Store the answer to an open question; None declines it. Raises BadInputError."""
        question = await self.get(name)
        if question.state is not QuestionState.OPEN:
            raise BadInputError(f"the question {name} is {question.state} already", param="id", code="not_open")
        state = QuestionState.DECLINED if text is None else QuestionState.ANSWERED
        question = replace(question, state=state, answer="" if text is None else read_answer(question, text))
        await self._facts.remember(FACT + question.id, encode(question))
        waiting = self._waiting.get(question.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(question)
        return question

    def is_waiting(self, name: str) -> bool:
        """Return whether a tool call waits for this answer."""
        return name in self._waiting

    async def listed(self) -> list[McpQuestion]:
        """Return the open questions, oldest first, and remove old ones."""
        found: list[McpQuestion] = []
        for name in await self._facts.facts(FACT):
            question = decode(await self._facts.fact(name))
            if question is None or (
                question.asked_at < self._clock() - KEEP_S and not self.is_waiting(name.removeprefix(FACT))
            ):
                await self._facts.remember(name, None)
            elif question.state is QuestionState.OPEN:
                found.append(question)
        return sorted(found, key=lambda each: each.asked_at)


def values_of(question: McpQuestion) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(question.answer or "{}")
    return values
