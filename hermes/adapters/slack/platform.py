"""Outbound Slack messages: rate limited, as blocks of mrkdwn.

Messages to one channel are sent in the order of the calls. Under a rate limit of Slack a call raises DeliveryError
immediately; the caller decides when to retry. Each message has its outbox id and part number as metadata, so that one
whose confirmation was lost is found and not sent twice. After a timeout the lookup waits until the message could have
taken effect.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hermes.adapters.chat.outgoing_file import read_file
from hermes.adapters.chat.turn_queue import TurnQueue
from hermes.adapters.slack.address import NAME, team_and_channel
from hermes.adapters.slack.command_sign import with_mark
from hermes.adapters.slack.failure import FAILURES, delivery_error
from hermes.adapters.slack.outbound import sent_lookup
from hermes.adapters.slack.outbound.blocks import blocks
from hermes.adapters.slack.outbound.parts import parts, shown
from hermes.adapters.slack.outbound.progress import Progress
from hermes.adapters.slack.outbound.upload import TOO_LARGE, bring, share
from hermes.adapters.slack.rate_limiter import SlackLimits, SlackRateLimiter
from hermes.adapters.slack.response import EPHEMERAL, Responses
from hermes.adapters.slack.workspace import SlackClient, Workspace
from hermes.domain.errors import DeliveryError, PlatformError, UnsendableFileError
from hermes.domain.outbox_message import OutboxKind, OutboxMessage, TurnEnd
from hermes.domain.source import Place
from hermes.ports.chat import Abilities, Platform

_ABILITIES = Abilities(edit=True, find=True, typing=True, buttons=True, show_every_s=1.2, files=True)
_SHOW_LATER_S = 1.2
_MAX_REMEMBERED = 1024
_LOOK_AFTER_S = 30.0  # an unconfirmed message may still take effect within this time
_QUICK = 200  # characters; longer markup is converted in a thread


class SlackPlatform(Platform):
    def __init__(
        self,
        client: Callable[[], SlackClient],
        *,
        limits: SlackLimits,
        progress: Progress,
        responses: Responses,
    ) -> None:
        self._client = client
        self._pace = SlackRateLimiter(limits, time.monotonic())
        self._progress = progress
        self._responses = responses
        self._reserved: dict[str, str] = {}  # growing replies, and the workspace whose edit is reserved for the end
        self._brought: dict[str, str] = {}  # uploaded file of an outbox message whose confirmation was lost
        self._queue = TurnQueue(lambda chat: self._pace.answered(chat, time.monotonic()))

    @property
    def name(self) -> str:
        return NAME

    @property
    def abilities(self) -> Abilities:
        return _ABILITIES

    def parts(self, text: str) -> Sequence[str]:
        return parts(text)

    async def ready(self, place: Place) -> None:
        workspace, _ = await self._where(place)
        await self._queue.ready(place.chat, lambda: self._wait(workspace, place.chat))

    async def send(self, outgoing: OutboxMessage, text: str) -> str:
        workspace, channel = await self._where(outgoing.place)
        part = len(outgoing.sent)
        self._leave_room(workspace, growing=_grows(outgoing, part, text))
        content = await _content(outgoing, part, text)
        if await self._responses.give(self._client().session, outgoing, content):
            return EPHEMERAL
        try:
            async with self._in_turn(workspace, outgoing.place.chat):
                answer = await workspace.client.chat_postMessage(
                    channel=channel,
                    thread_ts=outgoing.place.thread or None,
                    unfurl_links=False,
                    unfurl_media=False,
                    **content,
                )
        except DeliveryError as error:
            if error.gone:
                await self._responses.apologise(self._client().session, outgoing.place.chat)
            raise
        if _grows(outgoing, part, text):  # its end will be an edit
            self._pace.changes.take(workspace.identity.team, time.monotonic())
            _remember(self._reserved, outgoing.id, "")
        self._note_end(workspace, outgoing, part)
        return str(answer["ts"])

    async def send_file(self, outgoing: OutboxMessage, path: str, text: str) -> str:
        place = outgoing.place
        workspace, channel = await self._where(place)
        file = await asyncio.to_thread(read_file, path, if_too_large=TOO_LARGE)
        try:
            async with self._translated(place.chat, seen=False):
                name = await bring(self._client(), workspace, file)
            async with self._in_turn(workspace, place.chat):
                await share(workspace, name, file.name, channel=channel, thread=place.thread, text=text)
        except DeliveryError as error:
            if error.arrived_perhaps:
                _remember(self._brought, outgoing.id, name)
            if error.refused:  # a text may still be allowed there
                raise UnsendableFileError(str(error)) from error
            raise
        return name

    async def edit(self, outgoing: OutboxMessage, message: str, text: str) -> None:
        workspace, channel = await self._where(outgoing.place)
        part = outgoing.sent.index(message) if message in outgoing.sent else 0
        self._leave_room(workspace, growing=_grows(outgoing, part, text))
        content = await _content(outgoing, part, text)
        if await self._responses.give(self._client().session, outgoing, content, in_place=True):
            return
        if message == EPHEMERAL:
            raise DeliveryError("an ephemeral message cannot be edited", gone=True)
        changes = _changes(workspace)
        async with self._queue.lock(outgoing.place.chat):
            self._refuse_while_held(changes)
            if _grows(outgoing, part, text) or outgoing.id not in self._reserved:
                await asyncio.sleep(self._pace.changes.take(workspace.identity.team, time.monotonic()))
            async with self._translated(changes):
                await workspace.client.chat_update(channel=channel, ts=message, **content)
        if outgoing.final:
            self._reserved.pop(outgoing.id, None)
        self._note_end(workspace, outgoing, part)

    async def delete(self, outgoing: OutboxMessage, message: str) -> None:  # noqa: ARG002 - signature of the port
        raise DeliveryError("replies on Slack are edited, not deleted")  # and looked up by their metadata

    async def find(self, outgoing: OutboxMessage, part: int) -> str | None:
        workspace, channel = await self._where(outgoing.place)
        if self._responses.knows(outgoing):
            return None  # ephemeral messages cannot be looked up
        async with self._translated(f"{workspace.identity.team} looks"):
            path = _file_of(outgoing, part)
            brought = self._brought.get(outgoing.id, "")
            file = await asyncio.to_thread(_sought, path, brought) if path else None
            return await sent_lookup.find(workspace, channel, outgoing, part, file)

    async def show_typing(self, place: Place) -> None:
        workspace, _ = await self._where(place)
        self._progress.working(workspace, place)

    async def show_waiting(self, place: Place, *, over: bool = False) -> None:
        workspace, _ = await self._where(place)
        if over:
            self._progress.done(workspace, place, TurnEnd.STOPPED)
        else:
            self._progress.working(workspace, place)

    def _leave_room(self, workspace: Workspace, *, growing: bool) -> None:
        """Show a growing reply only if enough edits are left for its end and for other replies."""
        now = time.monotonic()
        if not growing:
            return
        if not self._pace.changes.has_room(workspace.identity.team, now) or self._pace.held_s(
            _changes(workspace), now
        ):
            raise DeliveryError("too many replies are growing in this workspace", retry_after_s=_SHOW_LATER_S)

    def _note_end(self, workspace: Workspace, outgoing: OutboxMessage, part: int) -> None:
        if outgoing.kind is OutboxKind.REPLY and outgoing.final and _is_last(outgoing, part):
            self._progress.done(workspace, outgoing.place, outgoing.end)

    async def _where(self, place: Place) -> tuple[Workspace, str]:
        """Return the workspace of the channel, and the channel id."""
        team, channel = team_and_channel(place.chat)
        client = self._client()
        try:
            known = await client.workspaces()
        except PlatformError as error:
            raise DeliveryError(str(error), retry_after_s=error.retry_after_s) from error
        if not team:
            return next(iter(known.values())), channel
        if team not in known:
            raise DeliveryError(
                f"no token for the Slack workspace {team[:40]!r}: {client.missing or 'none is configured'}",
                gone=client.missing is None,
            )
        return known[team], channel

    @asynccontextmanager
    async def _in_turn(self, workspace: Workspace, chat: str) -> AsyncIterator[None]:
        """Wait for the rate limits, then hold the chat for one new message."""
        try:
            async with self._queue.turn(chat, lambda: self._wait(workspace, chat)), self._translated(chat):
                yield
        except DeliveryError as error:
            if error.arrived_perhaps and isinstance(error.__cause__, TimeoutError):
                error.retry_after_s = _LOOK_AFTER_S
            raise

    async def _wait(self, workspace: Workspace, chat: str) -> None:
        await asyncio.sleep(self._pace.wait_s(chat, time.monotonic()))
        self._refuse_while_held(chat)
        await asyncio.sleep(self._pace.messages.take(workspace.identity.team, time.monotonic()))

    def _refuse_while_held(self, what: str) -> None:
        if (held_s := self._pace.held_s(what, time.monotonic())) > 0:
            raise DeliveryError(f"Slack's rate limit is reached; retry in {held_s:.0f} s", retry_after_s=held_s)

    @asynccontextmanager
    async def _translated(self, what: str, *, seen: bool = True) -> AsyncIterator[None]:
        """Translate errors. `seen`: people see the effect of the call."""
        try:
            yield
        except FAILURES as error:
            problem = delivery_error(error)
            problem.arrived_perhaps = problem.arrived_perhaps and seen
            if problem.retry_after_s is not None:
                self._pace.hold(what, time.monotonic() + problem.retry_after_s)
            raise problem from error


def _remember(known: dict[str, str], name: str, value: str) -> None:
    if name not in known and len(known) >= _MAX_REMEMBERED:
        del known[next(iter(known))]
    known[name] = value


async def _content(outgoing: OutboxMessage, part: int, text: str) -> dict[str, Any]:
    text = with_mark(outgoing, text)
    marked_up = shown(text) if len(text) < _QUICK else await asyncio.to_thread(shown, text)
    return {
        "text": marked_up,  # for notifications
        "blocks": blocks(outgoing, marked_up, last=_is_last(outgoing, part)),
        "metadata": sent_lookup.label(outgoing, part),
    }


def _grows(outgoing: OutboxMessage, part: int, text: str) -> bool:
    """Return True if more text follows. The reply may have ended while its first part waited."""
    if not outgoing.final:
        return True
    return outgoing.kind is OutboxKind.REPLY and parts(outgoing.text)[part : part + 1] != (text,)


def _is_last(outgoing: OutboxMessage, part: int) -> bool:
    return part + 1 >= len(parts(outgoing.text))


def _file_of(outgoing: OutboxMessage, part: int) -> str:
    """Return the path of the file in this part; empty for text."""
    number = part - (len(parts(outgoing.text)) if outgoing.text else 0)
    return outgoing.files[number] if outgoing.files and number >= 0 else ""


def _sought(path: str, brought: str) -> sent_lookup.SentFile:
    """Describe the file to look up. Blocking."""
    try:
        size_bytes = Path(path).stat().st_size
    except OSError:
        size_bytes = None
    return sent_lookup.SentFile(name=Path(path).name, size_bytes=size_bytes, id=brought)


def _changes(workspace: Workspace) -> str:
    return f"{workspace.identity.team} changes"
