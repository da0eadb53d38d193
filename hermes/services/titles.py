"""Titles of conversations, made by a model after the first turn.

One title is made at a time, and no turn waits for it. A conversation that has a title keeps it. What is not finished
when the daemon stops is made after a later turn.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Final

from loguru import logger

from hermes.domain.errors import HermesError
from hermes.domain.events import TurnAnswered
from hermes.domain.history.message_chain import text_and_calls
from hermes.domain.ids import Seq, SessionId, TurnId
from hermes.domain.session.state import Session
from hermes.domain.source import Source
from hermes.domain.text.title import clean_title
from hermes.domain.turn.message import EncodedMessage
from hermes.services.sessions import SessionService
from hermes.services.side_completion import SideCompletion

MAX_TITLE = 80  # characters
TURNS = 3  # a later turn makes no title
API_TURNS = 2  # turns of an API conversation before it gets one: single requests cost nothing more
WITHIN_S = 60.0
_WAITING_MAX = 100
_EXCERPT = 2000  # characters of the first message, and of an answer
_API = "api"
_INSTRUCTIONS = EncodedMessage(
    b'{"role":"system","content":"Write a title for the conversation that the user quotes: at most six words, in the '
    b'language of the conversation, without quotation marks. Answer with the title only."}'
)
_OPTIONS = b'{"max_tokens":60}'
_EDGES = " \t\"'`*#.\u201c\u201d\u2018\u2019\u00ab\u00bb"


class TitleService:
    NOTED: Final = (TurnAnswered,)  # events for `note`

    def __init__(
        self,
        *,
        sessions: SessionService,
        side: SideCompletion,
        new_turn_id: Callable[[], TurnId],
        model: Callable[[], str | None],
    ) -> None:
        """`model` returns the model that makes titles; empty: the conversation's own; None: there are no titles."""
        self._sessions = sessions
        self._side = side
        self._new_turn_id = new_turn_id
        self._model = model
        self._waiting: asyncio.Queue[TurnAnswered] = asyncio.Queue(_WAITING_MAX)

    def note(self, event: TurnAnswered) -> None:
        """Remember a finished turn. While many wait, it is left for a later turn."""
        if not self._waiting.full() and self._model() is not None:
            self._waiting.put_nowait(event)

    async def run(self) -> None:
        while True:
            answered = await self._waiting.get()
            try:
                async with asyncio.timeout(WITHIN_S):
                    await self._make(answered)
            except (HermesError, TimeoutError) as error:
                logger.info("session {}: no title was made: {}", answered.session, type(error).__name__)

    async def _make(self, answered: TurnAnswered) -> None:
        model = self._model()
        head = await self._head(answered.session)
        if model is None or head is None or not _needs_title(head):
            return
        report = await self._side.complete(
            self._new_turn_id(),
            (await self._question(head, answered.text),),
            _INSTRUCTIONS,
            options=_OPTIONS,
            source=Source(platform=head.platform),
            model=model or head.preferences.model,
        )
        title = cleaned(report.text)
        head = await self._head(answered.session)  # its person may have set one meanwhile
        if report.failure is not None or not title or head is None or not _needs_title(head):
            return
        await self._sessions.prefer(head.id, "title", title, "the model made a title")
        logger.debug("session {}: a title was made", head.id)

    async def _question(self, head: Session, answer: str) -> EncodedMessage:
        first = await self._sessions.messages(head.id, Seq(-1), 1, exact=True)
        asked = text_and_calls(first[0].message)[0] if first else ""
        quoted = f"User: {asked[:_EXCERPT]}\n\nAssistant: {answer[:_EXCERPT]}"
        content = f"<conversation>\n{quoted}\n</conversation>\n\nWrite its title."
        return EncodedMessage(json.dumps({"role": "user", "content": content}).encode())

    async def _head(self, session: SessionId) -> Session | None:
        return (await self._sessions.heads([session])).get(session)


def _needs_title(head: Session) -> bool:
    least = API_TURNS if head.platform == _API else 1
    is_first = head.parent is None and head.assignment is None
    return not head.preferences.title and is_first and least <= head.turns <= TURNS


def cleaned(text: str) -> str:
    """Return the title in a model's answer, without characters that cannot be printed; empty if there is none."""
    lines = (clean_title(line).strip(_EDGES) for line in text.splitlines())
    line = next(filter(None, lines), "")
    line = line.removeprefix("Title:").strip(_EDGES)
    return line if len(line) <= MAX_TITLE else line[: MAX_TITLE - 1].rstrip() + "…"
