"""Intake of Slack events: in order within a channel, concurrent across channels.

`take` returns when the event may be acknowledged: it is stored, or not for the bot. A refused event is retried with
backoff and keeps its place in the channel, except that a slow file does not delay commands and button presses. A
redelivery waits behind the first delivery and is then recognised by its id; after a restart the store recognises it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakValueDictionary

from loguru import logger

from hermes.adapters.chat.intake_retry import until_stored
from hermes.adapters.chat.order import ChatOrder
from hermes.adapters.slack.address import NAME, team_and_channel
from hermes.adapters.slack.failure import FAILURES
from hermes.adapters.slack.inbound.attachment import is_bare
from hermes.adapters.slack.inbound.download import described
from hermes.adapters.slack.inbound.event import ParsedEvent, SlackAddressing, channel_of, parse_event, team_of
from hermes.adapters.slack.inbound.thread import Threads
from hermes.adapters.slack.names import UserNames
from hermes.adapters.slack.response import Responses
from hermes.adapters.slack.workspace import SlackClient, Workspace
from hermes.domain.values import replace
from hermes.ports.chat import ChatIntake, Inbound
from hermes.system import clock as wall_clock

_MAX_REMEMBERED = 4096
_EPHEMERAL_TIMEOUT_S = 2.0  # Slack's timeout for an acknowledgement is three seconds


class SlackIntake:
    def __init__(
        self,
        addressing: SlackAddressing,
        *,
        responses: Responses | None = None,
        clock: Callable[[], float] = wall_clock.wall,
    ) -> None:
        self._addressing = addressing
        self._responses = responses or Responses()
        self._clock = clock
        self._names = UserNames()
        self._threads = Threads(self._names)
        self._orders: WeakValueDictionary[str, ChatOrder] = WeakValueDictionary()  # one per channel, while in use
        self._taken: dict[str, None] = {}  # ids, newest last
        self._in_progress: dict[object, float] = {}  # events in progress and their arrival times, oldest first

    @property
    def waits_since(self) -> float | None:
        """Arrival time of the oldest event that is not stored yet."""
        return next(iter(self._in_progress.values()), None)

    async def take(
        self,
        kind: str,
        payload: Mapping[str, Any],
        client: SlackClient,
        chat_intake: ChatIntake,
        *,
        timeout_s: float = math.inf,
    ) -> None:
        """Take an event. Raises PlatformError, or RETRYABLE after `timeout_s`, if it was not stored."""
        this = object()
        self._in_progress[this] = self._clock()
        try:
            await self._take(kind, payload, client, chat_intake, timeout_s)
        finally:
            del self._in_progress[this]

    async def _take(
        self, kind: str, payload: Mapping[str, Any], client: SlackClient, chat_intake: ChatIntake, timeout_s: float
    ) -> None:
        workspace = _workspace_of(payload, await client.workspaces())
        if workspace is None:
            if client.missing is not None:
                raise client.missing
            logger.warning("slack: event of workspace {} ignored: no token", team_of(payload))
            return
        found = self._parse(kind, payload, workspace)
        if found is None:
            return
        order = self._orders.setdefault(f"{workspace.identity.team}.{channel_of(payload)}", ChatOrder())
        async with order.place(urgent=found.is_urgent, slow=bool(found.inbound.attachments)):
            if found.inbound.id not in self._taken:
                await self._store_event(found, workspace, chat_intake, timeout_s)

    def _parse(self, kind: str, payload: Mapping[str, Any], workspace: Workspace) -> ParsedEvent | None:
        try:
            return parse_event(kind, payload, workspace.identity, self._addressing)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            # Slack sent JSON of an unknown form: skip it, or it would be redelivered forever.
            logger.warning("slack: {} {} skipped, unknown format: {!r}", kind, payload.get("event_id", ""), error)
            return None

    async def _store_event(
        self, found: ParsedEvent, workspace: Workspace, chat_intake: ChatIntake, timeout_s: float
    ) -> None:
        context = await self._threads.context_of(workspace, found)
        if context.ours:
            named = await self._with_names(found, workspace)
            inbound = replace(named, foreign=(*context.foreign, *named.foreign))
            if found.respond_to:
                self._responses.note(inbound, found.respond_to)
            whole = await _with_files(inbound, workspace)
            private_note = await until_stored(NAME, whole.id, lambda: chat_intake.take(whole), timeout_s=timeout_s)
            if private_note:
                await _send_ephemeral(inbound, private_note, workspace)
            self._threads.joined(found)
        if len(self._taken) >= _MAX_REMEMBERED:
            del self._taken[next(iter(self._taken))]
        self._taken[found.inbound.id] = None

    async def _with_names(self, found: ParsedEvent, workspace: Workspace) -> Inbound:
        """Add the names of mentioned people and of the writer. Button presses and commands need no writer."""
        inbound = found.inbound
        nameless = inbound.user_name or inbound.answers or inbound.text.startswith("/")
        people = found.people if nameless else (*found.people, inbound.user)
        names = await self._names.of(workspace, people) if people else {}
        name = inbound.user_name or names.get(inbound.user, "")
        mentions = tuple((each, names[each]) for each in found.people if each in names)
        return replace(inbound, mentions=mentions, user_name=name)


async def _with_files(inbound: Inbound, workspace: Workspace) -> Inbound:
    """Add details of files for which Slack sent only the id."""
    files = [await described(workspace, each) if is_bare(each) else each for each in inbound.attachments]
    return replace(inbound, attachments=tuple(files))


async def _send_ephemeral(inbound: Inbound, text: str, workspace: Workspace) -> None:
    """Post an ephemeral message. Failures are ignored."""
    _, channel = team_and_channel(inbound.place.chat)
    try:
        async with asyncio.timeout(_EPHEMERAL_TIMEOUT_S):
            await workspace.client.chat_postEphemeral(
                channel=channel, user=inbound.user, text=text, thread_ts=inbound.place.thread or None
            )
    except FAILURES as error:
        logger.debug("slack: ephemeral message to {} failed: {!r}", inbound.user, error)


def _workspace_of(payload: Mapping[str, Any], workspaces: Mapping[str, Workspace]) -> Workspace | None:
    team = team_of(payload)
    if team in workspaces:
        return workspaces[team]
    # An organisation's id, or none: a single token is unambiguous.
    return next(iter(workspaces.values())) if len(workspaces) == 1 and not team.startswith("T") else None
