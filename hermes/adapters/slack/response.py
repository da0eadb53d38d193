"""Ephemeral answers to native commands, through the response URL of the command.

A response URL takes five answers within half an hour, also from a channel without the bot. It is kept in memory only:
after a restart, or when it is used up, the answer is an ordinary message in the channel. An unconfirmed answer is
sent again; only the person who gave the command sees it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp
from loguru import logger

from hermes.adapters.slack.failure import delivery_error
from hermes.domain.errors import DeliveryError
from hermes.domain.ids import InboundKey
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.values import dataclass, replace
from hermes.ports.chat import Inbound

EPHEMERAL = "ephemeral"  # placeholder for the unknown id of such a message
_NOT_THERE = "I cannot answer in that channel because I am not a member. /invite me, or write to me directly."
_GOOD_FOR_S = 29 * 60.0  # Slack's half hour less a minute
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
        self._known: dict[InboundKey, _Address] = {}  # by inbound id, newest last

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
        """Send an ephemeral answer. False: send it in the channel. `in_place` replaces the message of the button."""
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
        """Tell people whose command came from a channel without the bot that it cannot answer there."""
        unanswered = [name for name, each in self._known.items() if each.chat == chat and each.left == _USES]
        for name in unanswered:
            address = self._address(name)
            self._known.pop(name, None)
            if address is None:
                continue
            try:
                await _posted(session, address.url, {"text": _NOT_THERE})
            except DeliveryError as error:
                logger.debug("slack: could not report to {} that the bot is not in the channel: {}", name, error)

    def _address(self, name: InboundKey) -> _Address | None:
        found = self._known.get(name)
        return found if found is not None and found.left > 0 and self._clock() < found.until else None


def _answered(outgoing: OutboxMessage) -> InboundKey:
    """Return the inbound id that a notice answers: the end of its own id."""
    return InboundKey(outgoing.id.partition(":")[2] if outgoing.kind is OutboxKind.NOTICE else "")


async def _posted(session: aiohttp.ClientSession, url: str, content: Mapping[str, Any]) -> bool:
    """Post an answer. False: the URL has expired."""
    try:
        async with session.post(url, json={"response_type": "ephemeral", **content}) as answer:
            status, wait_s = answer.status, answer.headers.get("Retry-After", "")
    except (aiohttp.ClientError, TimeoutError) as error:
        raise delivery_error(error) from error
    if status == 429:
        retry_s = float(wait_s) if wait_s.isdecimal() else _DEFAULT_WAIT_S
        raise DeliveryError(f"Slack's rate limit is reached; retry in {retry_s:g} s", retry_after_s=retry_s)
    if status >= 500:
        raise DeliveryError(f"Slack failed (HTTP {status})", arrived_perhaps=True)
    return status < 300
