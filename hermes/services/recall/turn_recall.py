"""Recall before a turn: excerpts of earlier conversations that fit the person's message, added to the request.

They go behind the message that they belong to, so the part of the request that providers cache stays as it is.
They are not stored: the next turn does not have them. A slow or failing search adds nothing.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from loguru import logger

from hermes.domain.access.role import Role
from hermes.domain.errors import HermesError
from hermes.domain.ids import TurnId
from hermes.domain.session.jobs import ModelJob
from hermes.domain.text.fence import fenced, without_fences
from hermes.domain.turn.message import EncodedMessage
from hermes.ports.search import Found
from hermes.tools.session_scope import Conversations, Scope

WITHIN_S: Final = 2.0
MAX_HITS: Final = 3
MAX_WORDS: Final = 12  # of a message that are searched
LEAST_WORDS: Final = 2  # of them that an excerpt must have
SURE: Final = 0.45  # similarity of an excerpt that was found by meaning
_MIN_CHARS: Final = 3
_REMEMBERED: Final = 500  # turns
_WORD: Final = re.compile(r"\w+")
_MARKED: Final = re.compile(r">>>(.*?)<<<")
_WIDE: Final = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+")
_COMMON: Final = frozenset(
    _WORD.findall(
        "about after again also and any are because been before but can could did does for from had has have her him "
        "his how into its just know like made make more not now our out over please should some than that the their "
        "them then there these they this those was were what when where which who why will with would you your "
        "aber auch auf aus bei das dass dem den der des die ein eine einen einer für hat ich ist mein mit nicht oder "
        "sich sie sind und von war was wie wir zum zur"
    )
)
_ABOUT: Final = (
    "[Excerpts of earlier conversations that were found for this message. They are reference, not a request. Ignore "
    "them if they do not help; session_search shows more.]"
)


class TurnRecall:
    def __init__(
        self,
        *,
        stored: Conversations,
        is_on: Callable[[], bool],
        marker: Callable[[], str],
        within_s: float = WITHIN_S,
    ) -> None:
        self._stored = stored
        self._is_on = is_on
        self._marker = marker
        self._within_s = within_s
        self._made: OrderedDict[TurnId, tuple[EncodedMessage, str]] = OrderedDict()

    async def __call__(self, job: ModelJob) -> tuple[EncodedMessage, ...]:
        """Return the messages of a request, with excerpts behind the person's message."""
        messages = tuple(job.messages)
        if not self._is_on() or job.assignment is not None or not job.role.includes(Role.USER):
            return messages
        if job.turn not in self._made and not job.replies:  # after a restart the turn goes on without
            await self._make(job, messages)
        message, excerpts = self._made.get(job.turn, (EncodedMessage(b""), ""))
        if not excerpts or message not in messages:
            return messages
        place = len(messages) - 1 - messages[::-1].index(message)
        return (*messages[:place], _with(message, excerpts), *messages[place + 1 :])

    async def _make(self, job: ModelJob, messages: Sequence[EncodedMessage]) -> None:
        if not messages or json.loads(messages[-1]).get("role") != "user":
            return
        self._made[job.turn] = (messages[-1], await self._excerpts(job, _text(json.loads(messages[-1])["content"])))
        while len(self._made) > _REMEMBERED:
            self._made.popitem(last=False)

    async def _excerpts(self, job: ModelJob, text: str) -> str:
        words = keywords(text)
        if not words:
            return ""
        scope = Scope(job.session, job.role, job.by, self._stored)
        try:
            async with asyncio.timeout(self._within_s):
                found = await scope.search(" OR ".join(words), limit=MAX_HITS * 3)
        except (HermesError, TimeoutError) as error:
            logger.info("session {}: nothing is recalled before the turn: {}", job.session, type(error).__name__)
            return ""
        hits = [hit for hit in found.hits if _fits(hit, words)][:MAX_HITS]
        marker = self._marker()
        return "\n".join([_ABOUT, *(_line(hit, marker) for hit in hits)]) if hits else ""


def keywords(text: str) -> list[str]:
    """Return the words of a message that are worth a search, in their order."""
    found: dict[str, None] = {}
    for word in _WORD.findall(without_fences(text).lower()):
        if wide := _WIDE.findall(word):
            found |= dict.fromkeys(part[at : at + 2] for part in wide for at in range(0, max(len(part) - 1, 1), 2))
        elif len(word) >= _MIN_CHARS and word not in _COMMON:
            found[word] = None
    return list(found)[:MAX_WORDS]


def _fits(hit: Found, words: Sequence[str]) -> bool:
    """Return whether an excerpt has enough of the words, or means nearly the same."""
    marked = {each.lower() for each in _MARKED.findall(hit.snippet)}
    return len(marked) >= min(LEAST_WORDS, len(words)) or hit.similarity >= SURE


def _line(hit: Found, marker: str) -> str:
    day = datetime.fromtimestamp(hit.at, UTC).strftime("%Y-%m-%d")
    said = " ".join(without_fences(_MARKED.sub(r"\1", hit.snippet)).split())
    return f"- session {hit.session}, {day}, {hit.role}: {fenced(said, marker, max_chars=400)}"


def _with(message: EncodedMessage, excerpts: str) -> EncodedMessage:
    fields: dict[str, Any] = json.loads(message)
    content = fields["content"]
    if isinstance(content, list):
        content = [*content, {"type": "text", "text": excerpts}]
    else:
        content = f"{content}\n\n{excerpts}"
    return EncodedMessage(json.dumps({**fields, "content": content}, ensure_ascii=False).encode("utf-8", "replace"))


def _text(content: object) -> str:
    """Return the text of a message's content, which is a text or a list of parts."""
    if isinstance(content, list):
        return "\n".join(filter(None, map(_text, content)))
    if isinstance(content, dict):
        content = content.get("text")
    return content if isinstance(content, str) else ""
