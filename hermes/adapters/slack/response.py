"""Answers that whoever gave a native command sees alone, under the address that Slack gives along with it.

Such an address takes five answers within half an hour, also from a channel where the bot is no member. It is in
memory only: after a restart, and when it is used up, the answer is an ordinary message in the channel. One whose
arrival nobody confirmed is given again, which the person alone sees.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import aiohttp
from loguru import logger

from hermes.adapters.slack.failure import delivery_error
from hermes.domain.errors import DeliveryError
from hermes.domain.types import InboundKey, OutboxKind, OutboxMessage
from hermes.domain.values import dataclass
from hermes.ports.chat import Inbound

EPHEMERAL = "ephemeral"  # stands for the id of such a message, which nobody is told
_NOT_THERE = (
    "I cannot answer there, because I am not in that channel. /invite me, or write to me directly, and ask again."
)
_GOOD_FOR_S = 29 * 60.0  # Slack's half an hour, less a minute
_USES = 5
_MAX_REMEMBERED = 1024
_DEFAULT_WAIT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Address:
    url: str
    chat: str
    until: float
    left: int = _USES


class Responses:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[InboundKey, _Address] = {}  # by what they answer, the latest last

    def note(self, inbound: Inbound, url: str) -> None:
        if len(self._known) >= _MAX_REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[inbound.id] = _Address(url=url, chat=inbound.place.chat, until=self._clock() + _GOOD_FOR_S)

    def knows(self, outgoing: OutboxMessage) -> bool:
        return self._address(_answered(outgoing)) is not None

    async def give(
        self,
        session: aiohttp.ClientSession,
        outgoing: OutboxMessage,
        content: Mapping[str, Any],
        *,
        in_place: bool = False,
    ) -> bool:
        """False: it has to be said in the channel. `in_place`: of the message whose button was pressed."""
        name = _answered(outgoing)
        if (address := self._address(name)) is None:
            return False
        said = {"text": content["text"], "blocks": content["blocks"], "replace_original": in_place}
        if await _posted(session, address.url, said):
            self._known[name] = replace(address, left=address.left - 1)
            return True
        del self._known[name]
        return False

    async def apologise(self, session: aiohttp.ClientSession, chat: str) -> None:
        """To whoever asked from a channel in which we can say nothing, and was not answered yet."""
        unanswered = [name for name, each in self._known.items() if each.chat == chat and each.left == _USES]
        for name in unanswered:
            address = self._address(name)
            self._known.pop(name, None)
            if address is None:
                continue
            try:
                await _posted(session, address.url, {"text": _NOT_THERE})
            except DeliveryError as error:
                logger.debug("{} could not be told that we are not there: {}", name, error)

    def _address(self, name: InboundKey) -> _Address | None:
        found = self._known.get(name)
        return found if found is not None and found.left > 0 and self._clock() < found.until else None


def _answered(outgoing: OutboxMessage) -> InboundKey:
    """What a notice is about: its id ends with that. Nothing else that is owed is an answer to a command."""
    return InboundKey(outgoing.id.partition(":")[2] if outgoing.kind is OutboxKind.NOTICE else "")


async def _posted(session: aiohttp.ClientSession, url: str, content: Mapping[str, Any]) -> bool:
    """False: the address is not good any more."""
    try:
        async with session.post(url, json={"response_type": "ephemeral", **content}) as answer:
            status, wait_s = answer.status, answer.headers.get("Retry-After", "")
    except (aiohttp.ClientError, TimeoutError) as error:
        raise delivery_error(error) from error
    if status == 429:
        retry_s = float(wait_s) if wait_s.isdecimal() else _DEFAULT_WAIT_S
        raise DeliveryError(f"Slack wants us to wait for {retry_s:g} s", retry_after_s=retry_s)
    if status >= 500:
        raise DeliveryError(f"Slack is out of order (HTTP {status})", arrived_perhaps=True)
    return status < 300
