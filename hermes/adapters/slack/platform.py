"""Saying things on Slack: paced, as blocks of mrkdwn, and with errors that say what they mean.

Messages to one channel go one after the other, in the order of the calls. What Slack wants left alone is answered
with DeliveryError at once: whoever delivers decides what to do until then. Each message says in its metadata which
part of which obligation it is, so that one whose answer was lost is found, and never sent twice; one that was not
confirmed in time is looked for when it has had time to take effect.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from hermes.adapters.chat.outgoing_file import read_file
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
from hermes.domain.types import OutboxKind, OutboxMessage, Place, TurnEnd
from hermes.ports.chat import Abilities, Platform

_ABILITIES = Abilities(edit=True, find=True, typing=True, buttons=True, show_every_s=1.2, files=True)
_SHOW_LATER_S = 1.2
_MAX_REMEMBERED = 1024
_LOOK_AFTER_S = 30.0  # for a message that Slack did not confirm in time: it may take effect later still
_QUICK = 200  # characters whose markup holds up nobody


class SlackPlatform(Platform):
    def __init__(
        self,
        wire: Callable[[], SlackClient],
        *,
        limits: SlackLimits,
        progress: Progress,
        responses: Responses,
    ) -> None:
        self._wire = wire
        self._pace = SlackRateLimiter(limits, time.monotonic())
        self._progress = progress
        self._responses = responses
        self._reserved: dict[str, str] = {}  # replies that grow, and the change for whose final words was taken
        self._brought: dict[str, str] = {}  # the file that an obligation was about to show when its answer was lost
        self._ready: set[str] = set()  # chats that have waited for their turn, and not used it yet
        self._queues: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # one a chat, while it is used

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
        async with self._queue(place.chat):
            if place.chat not in self._ready:
                await self._turn(workspace, place.chat)
                self._ready.add(place.chat)

    async def send(self, outgoing: OutboxMessage, text: str) -> str:
        workspace, channel = await self._where(outgoing.place)
        part = len(outgoing.sent)
        self._leave_room(workspace, growing=_grows(outgoing, part, text))
        content = await _content(outgoing, part, text)
        if await self._responses.give(self._wire().session, outgoing, content):
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
                await self._responses.apologise(self._wire().session, outgoing.place.chat)
            raise
        if _grows(outgoing, part, text):  # its final words will be a change
            self._pace.changes.take(workspace.me.team, time.monotonic())
            _remember(self._reserved, outgoing.id, "")
        self._note_end(workspace, outgoing, part)
        return str(answer["ts"])

    async def send_file(self, outgoing: OutboxMessage, path: str, text: str) -> str:
        place = outgoing.place
        workspace, channel = await self._where(place)
        file = await asyncio.to_thread(read_file, path, if_too_large=TOO_LARGE)
        try:
            async with self._translated(place.chat, seen=False):
                name = await bring(self._wire(), workspace, file)
            async with self._in_turn(workspace, place.chat):
                await share(workspace, name, file.name, channel=channel, thread=place.thread, text=text)
        except DeliveryError as error:
            if error.arrived_perhaps:
                _remember(self._brought, outgoing.id, name)
            if error.refused:  # words it may take there all the same
                raise UnsendableFileError(str(error)) from error
            raise
        return name

    async def edit(self, outgoing: OutboxMessage, message: str, text: str) -> None:
        workspace, channel = await self._where(outgoing.place)
        part = outgoing.sent.index(message) if message in outgoing.sent else 0
        self._leave_room(workspace, growing=_grows(outgoing, part, text))
        content = await _content(outgoing, part, text)
        if await self._responses.give(self._wire().session, outgoing, content, in_place=True):
            return
        if message == EPHEMERAL:
            raise DeliveryError("what one person saw alone is gone", gone=True)
        changes = _changes(workspace)
        async with self._queue(outgoing.place.chat):
            self._refuse_while_held(changes)
            if _grows(outgoing, part, text) or outgoing.id not in self._reserved:
                await asyncio.sleep(self._pace.changes.take(workspace.me.team, time.monotonic()))
            async with self._translated(changes):
                await workspace.client.chat_update(channel=channel, ts=message, **content)
        if outgoing.final:
            self._reserved.pop(outgoing.id, None)
        self._note_end(workspace, outgoing, part)

    async def delete(self, outgoing: OutboxMessage, message: str) -> None:  # noqa: ARG002 - as the port has it
        raise DeliveryError("on Slack a reply is changed where it stands")  # and found by what it carries

    async def find(self, outgoing: OutboxMessage, part: int) -> str | None:
        workspace, channel = await self._where(outgoing.place)
        if self._responses.knows(outgoing):
            return None  # what one person sees alone cannot be looked up
        async with self._translated(f"{workspace.me.team} looks"):
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
        """A reply that still grows is shown only where its final words, and those of others, can follow soon."""
        now = time.monotonic()
        if not growing:
            return
        if not self._pace.changes.has_room(workspace.me.team, now) or self._pace.held_s(_changes(workspace), now):
            raise DeliveryError("too many replies grow in this workspace right now", retry_after_s=_SHOW_LATER_S)

    def _note_end(self, workspace: Workspace, outgoing: OutboxMessage, part: int) -> None:
        if outgoing.kind is OutboxKind.REPLY and outgoing.final and _is_last(outgoing, part):
            self._progress.done(workspace, outgoing.place, outgoing.end)

    async def _where(self, place: Place) -> tuple[Workspace, str]:
        """Whose token opens the channel, and its id."""
        team, channel = team_and_channel(place.chat)
        wire = self._wire()
        try:
            known = await wire.workspaces()
        except PlatformError as error:
            raise DeliveryError(str(error), retry_after_s=error.retry_after_s) from error
        if not team:
            return next(iter(known.values())), channel
        if team not in known:
            raise DeliveryError(
                f"no token opens the Slack workspace {team[:40]!r}: {wire.missing or 'there is none'}",
                gone=wire.missing is None,
            )
        return known[team], channel

    def _queue(self, chat: str) -> asyncio.Lock:
        return self._queues.setdefault(chat, asyncio.Lock())

    @asynccontextmanager
    async def _in_turn(self, workspace: Workspace, chat: str) -> AsyncIterator[None]:
        """In which something new is said."""
        async with self._queue(chat):
            if chat not in self._ready:
                await self._turn(workspace, chat)
            self._ready.discard(chat)
            try:
                async with self._translated(chat):
                    yield
            except DeliveryError as error:
                if error.arrived_perhaps and isinstance(error.__cause__, TimeoutError):
                    error.retry_after_s = _LOOK_AFTER_S
                raise
            finally:
                self._pace.answered(chat, time.monotonic())

    async def _turn(self, workspace: Workspace, chat: str) -> None:
        await asyncio.sleep(self._pace.wait_s(chat, time.monotonic()))
        self._refuse_while_held(chat)
        await asyncio.sleep(self._pace.messages.take(workspace.me.team, time.monotonic()))

    def _refuse_while_held(self, what: str) -> None:
        if (held_s := self._pace.held_s(what, time.monotonic())) > 0:
            raise DeliveryError(f"Slack wants us to wait for {held_s:.0f} s more", retry_after_s=held_s)

    @asynccontextmanager
    async def _translated(self, what: str, *, seen: bool = True) -> AsyncIterator[None]:
        """`seen`: whether people see what was done in it, if it was."""
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
    """Whether this is not the last that will be said of it: an answer may have come while its beginning waited."""
    if not outgoing.final:
        return True
    return outgoing.kind is OutboxKind.REPLY and parts(outgoing.text)[part : part + 1] != (text,)


def _is_last(outgoing: OutboxMessage, part: int) -> bool:
    return part + 1 >= len(parts(outgoing.text))


def _file_of(outgoing: OutboxMessage, part: int) -> str:
    """The path of the file that this part shows; empty: it is text."""
    number = part - (len(parts(outgoing.text)) if outgoing.text else 0)
    return outgoing.files[number] if outgoing.files and number >= 0 else ""


def _sought(path: str, brought: str) -> sent_lookup.SentFile:
    """In a thread."""
    try:
        size_bytes = Path(path).stat().st_size
    except OSError:
        size_bytes = None
    return sent_lookup.SentFile(name=Path(path).name, size_bytes=size_bytes, id=brought)


def _changes(workspace: Workspace) -> str:
    return f"{workspace.me.team} changes"
