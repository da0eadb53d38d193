"""What came in, by whichever way, on its way to the disk: in order in each channel, several channels side by side.

When `take` returns, it may be confirmed to Slack: it is stored, or it is not for us. What is refused for now is
offered again, a little later each time, and holds its place: nothing of its channel goes before it, but that a file
which takes long holds up no command and no button. A second delivery waits behind the first one and is then known by
its id; after a restart the store knows it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

from loguru import logger

from hermes.adapters.chat.order import ChatOrder
from hermes.adapters.slack.address import team_and_channel
from hermes.adapters.slack.failure import FAILURES
from hermes.adapters.slack.inbound.attachment import is_bare
from hermes.adapters.slack.inbound.download import described
from hermes.adapters.slack.inbound.event import ParsedEvent, SlackAddressing, channel_of, heard, team_of
from hermes.adapters.slack.inbound.thread import Threads
from hermes.adapters.slack.names import UserNames
from hermes.adapters.slack.response import Responses
from hermes.adapters.slack.workspace import SlackClient, Workspace
from hermes.domain.errors import (
    AlreadySeenError,
    BusyError,
    OutcomeUnknownError,
    RefusedError,
    StoppingError,
    StorageError,
)
from hermes.ports.chat import ChatEdge, Inbound
from hermes.system import clock as wall_clock

NOT_NOW = (StoppingError, BusyError, StorageError, OutcomeUnknownError)  # it was not taken: Slack is to keep it
_MAX_REMEMBERED = 4096
_ASIDE_S = 2.0  # Slack wants to hear within three that the press has come
_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 5.0


class SlackIntake:
    def __init__(
        self,
        manners: SlackAddressing,
        *,
        responses: Responses | None = None,
        clock: Callable[[], float] = wall_clock.wall,
    ) -> None:
        self._manners = manners
        self._responses = responses or Responses()
        self._clock = clock
        self._names = UserNames()
        self._threads = Threads(self._names)
        self._orders: WeakValueDictionary[str, ChatOrder] = WeakValueDictionary()  # one a channel, while it is used
        self._taken: dict[str, None] = {}  # ids, the latest last
        self._in_hand: dict[object, float] = {}  # what is being taken, and since when, the oldest first

    @property
    def waits_since(self) -> float | None:
        """When the oldest came that is not taken yet."""
        return next(iter(self._in_hand.values()), None)

    async def take(
        self,
        kind: str,
        payload: Mapping[str, Any],
        wire: SlackClient,
        edge: ChatEdge,
        *,
        patience_s: float = math.inf,
    ) -> None:
        """Raises PlatformError, and NOT_NOW when its patience is over: then it was not taken."""
        this = object()
        self._in_hand[this] = self._clock()
        try:
            await self._take(kind, payload, wire, edge, patience_s)
        finally:
            del self._in_hand[this]

    async def _take(
        self, kind: str, payload: Mapping[str, Any], wire: SlackClient, edge: ChatEdge, patience_s: float
    ) -> None:
        workspace = _whose(payload, await wire.workspaces())
        if workspace is None:
            if wire.missing is not None:
                raise wire.missing
            logger.warning("slack: something came from the workspace {}, which has no token here", team_of(payload))
            return
        found = self._understood(kind, payload, workspace)
        if found is None:
            return
        order = self._orders.setdefault(f"{workspace.me.team}.{channel_of(payload)}", ChatOrder())
        async with order.place(urgent=found.is_urgent, slow=bool(found.inbound.attachments)):
            if found.inbound.id not in self._taken:
                await self._hand_over(found, workspace, edge, patience_s)

    def _understood(self, kind: str, payload: Mapping[str, Any], workspace: Workspace) -> ParsedEvent | None:
        try:
            return heard(kind, payload, workspace.me, self._manners)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            # Slack's JSON in a shape we do not know: one such event must not be delivered for ever.
            logger.warning("slack: {} {} is not understood: {!r}", kind, payload.get("event_id", ""), error)
            return None

    async def _hand_over(self, found: ParsedEvent, workspace: Workspace, edge: ChatEdge, patience_s: float) -> None:
        look = await self._threads.look(workspace, found)
        if look.ours:
            named = await self._with_names(found, workspace)
            inbound = replace(named, foreign=(*look.foreign, *named.foreign))
            if found.respond_to:
                self._responses.note(inbound, found.respond_to)
            aside = await _stored(await _with_files(inbound, workspace), edge, patience_s)
            if aside:
                await _tell_alone(inbound, aside, workspace)
            self._threads.joined(found)
        if len(self._taken) >= _MAX_REMEMBERED:
            del self._taken[next(iter(self._taken))]
        self._taken[found.inbound.id] = None

    async def _with_names(self, found: ParsedEvent, workspace: Workspace) -> Inbound:
        """Whoever is mentioned, and whoever writes: a button and a command need no name."""
        inbound = found.inbound
        nameless = inbound.user_name or inbound.answers or inbound.text.startswith("/")
        people = found.people if nameless else (*found.people, inbound.user)
        names = await self._names.of(workspace, people) if people else {}
        name = inbound.user_name or names.get(inbound.user, "")
        mentions = tuple((each, names[each]) for each in found.people if each in names)
        return replace(inbound, mentions=mentions, user_name=name)


async def _with_files(inbound: Inbound, workspace: Workspace) -> Inbound:
    """With what Slack knows of files of which it gave the id alone."""
    files = [await described(workspace, each) if is_bare(each) else each for each in inbound.attachments]
    return replace(inbound, attachments=tuple(files))


async def _tell_alone(inbound: Inbound, text: str, workspace: Workspace) -> None:
    """Nobody else sees it, and nobody misses it when it fails."""
    _, channel = team_and_channel(inbound.place.chat)
    try:
        async with asyncio.timeout(_ASIDE_S):
            await workspace.client.chat_postEphemeral(
                channel=channel, user=inbound.user, text=text, thread_ts=inbound.place.thread or None
            )
    except FAILURES as error:
        logger.debug("{} could not be told why it did nothing: {!r}", inbound.user, error)


async def _stored(inbound: Inbound, edge: ChatEdge, patience_s: float) -> str:
    deadline = time.monotonic() + patience_s
    wait_s = _FIRST_WAIT_S
    while True:
        try:
            return await edge.take(inbound)
        except AlreadySeenError:
            return ""
        except NOT_NOW as error:
            if time.monotonic() + wait_s > deadline:
                raise
            logger.info("{} is not taken yet, and is offered again: {}", inbound.id, error)
        except RefusedError as error:
            logger.error("{} is given up, it can never be taken: {}", inbound.id, error)
            return ""
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, _LONGEST_WAIT_S)


def _whose(payload: Mapping[str, Any], workspaces: Mapping[str, Workspace]) -> Workspace | None:
    team = team_of(payload)
    if team in workspaces:
        return workspaces[team]
    # An organisation's id, or none: with a single token there is no doubt.
    return next(iter(workspaces.values())) if len(workspaces) == 1 and not team.startswith("T") else None
