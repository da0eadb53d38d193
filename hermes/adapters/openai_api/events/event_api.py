"""GET /api/events: the events of all sessions as one stream, which a client can continue after a break.

Stored events are read from the journal, so that none is lost and their ids stay valid after a restart. An event of
the hub, or a new end of the journal, is the hint to read on.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import closing
from typing import Annotated

from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from hermes.adapters.http import parameter
from hermes.adapters.http.caller import CALLER, is_owner
from hermes.adapters.http.connection import connection_of
from hermes.adapters.http.event_stream import EventStream, frame, open_stream
from hermes.adapters.http.listener import until
from hermes.adapters.http.schema import Fields, SessionIdText
from hermes.adapters.http.service import Service
from hermes.adapters.openai_api.events.journal_event import JournalEvents, Named, ids_of, live_event
from hermes.domain.errors import UnknownSessionError
from hermes.domain.events import Event, TextDelta
from hermes.domain.ids import SessionId
from hermes.domain.read.views import JournalEntry
from hermes.domain.values import dataclass
from hermes.ports.hub import Subscription
from hermes.ports.sessions import Sessions

MAX_REPLAY = 10_000  # records; a client that missed more gets a gap
_PAGE = 500
_UNKNOWN = 2**63  # position of an id that is not ours
_MAX_REMEMBERED = 10_000  # platforms of sessions
_LOOK_S = 1.0  # some records have no live event
_STOPPING = "The daemon stops or restarts. Connect again when it is back; no stored event is lost."


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    session: SessionId | None = None
    platform: str = ""
    types: tuple[str, ...] = ()  # names, or their parts before a dot

    def wants(self, name: str) -> bool:
        return not self.types or any(name == each or name.startswith(f"{each}.") for each in self.types)


def start_position(given: int | None, end: int) -> tuple[int, str]:
    """Return the position to read from, and the reason of a gap, if there is one."""
    if given is None:
        return end, ""
    if given > end:
        return end, "unknown_position"
    return (end, "too_old") if end - given > MAX_REPLAY else (given, "")


class EventsQuery(Fields):
    session_id: SessionIdText | UnsetType = UNSET
    platform: str = ""
    type: Annotated[str, Meta(description="names or their first parts, separated by commas")] = ""
    after: Annotated[str, Meta(pattern=r"^[0-9]{1,18}$(?!\n)", description="the id of an event")] | UnsetType = UNSET


class EventApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/api/events", self.events)]

    async def events(self, request: web.Request) -> web.StreamResponse:
        service = self._service
        asked = parameter.query(request, EventsQuery)
        wanted = EventFilter(
            session=SessionId(asked.session_id) if asked.session_id else None,
            platform=asked.platform,
            types=tuple(filter(None, asked.type.split(","))),
        )
        given = _last_event(request, asked)
        with closing(AllEvents(service, wanted)) as events:
            connection = connection_of(request)
            connection.follows()
            stream = await open_stream(request)
            work = events.send_all(stream, given)
            await until(work, connection.lost, service.lifetime.leaving)
            if not connection.lost.done():
                await until(events.report_stop(stream), connection.lost, service.lifetime.over)
            return stream.response


def _last_event(request: web.Request, asked: EventsQuery) -> int | None:
    text = parameter.header(request, parameter.LAST_EVENT_HEADER) or asked.after
    if not text:
        return None
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else _UNKNOWN


class AllEvents:
    """Events of one reader, in order. Subscribes before it reads the journal, so that no hint is missed."""

    def __init__(self, service: Service, wanted: EventFilter) -> None:
        self._sessions: Sessions = service.sessions
        self._hub = service.hub
        self._ping_s = service.ping_s
        self._wanted = wanted
        self._feed: Subscription = service.hub.subscribe(session=wanted.session)
        self._names = JournalEvents(service.sessions)
        self._platforms: dict[SessionId, str | None] = {}
        self._position = 0

    def close(self) -> None:
        self._feed.close()

    async def send_all(self, stream: EventStream, given: int | None) -> None:
        """Send events until the caller cancels."""
        end = self._sessions.journal_end()
        self._position, gap = start_position(given, end)
        if gap:
            fields = {"reason": gap, "requested": given, "position": self._position}
            await self._send(stream, ("gap", fields), self._position)
        else:
            await self._send(stream, ("stream.opened", {"position": self._position}), self._position)
        clock = asyncio.get_running_loop().time
        sent_at = clock()
        while True:
            sent = await self._send_stored(stream)
            for event in _joined(await self._next_events()):
                sent |= await self._send_stored(stream)
                sent |= await self._send_live(stream, event)
            if not sent and clock() - sent_at >= self._ping_s:  # also while others' events are left out
                await stream.send_frame(f"id: {self._position}\n: ping\n\n".encode())
                sent = True
            sent_at = clock() if sent else sent_at

    async def report_stop(self, stream: EventStream) -> None:
        await self._send(stream, ("daemon.stopping", {"text": _STOPPING, "last_event_id": str(self._position)}))

    async def _next_events(self) -> list[Event]:
        """Return the events that have arrived; none after a while."""
        try:
            async with asyncio.timeout(_LOOK_S):
                first = await anext(self._feed, None)
        except TimeoutError:
            return []
        if first is not None:
            return [first, *self._feed.waiting()]
        self._feed.close()  # it lagged: stored events are not lost
        self._feed = self._hub.subscribe(session=self._wanted.session)
        return []

    async def _send_stored(self, stream: EventStream) -> bool:
        sent = False
        while self._position < self._sessions.journal_end():
            page = await self._sessions.journal(self._position, _PAGE)
            for entry in page.entries:
                sent |= await self._send_entry(stream, entry)
                self._position = entry.position
            self._position = page.position
        return sent

    async def _send_entry(self, stream: EventStream, entry: JournalEntry) -> bool:
        if self._wanted.session not in (None, entry.session) or not await self._is_open(entry.session):
            return False
        named = await self._names.of_entry(entry)
        if named is None or not self._wanted.wants(named[0]):
            return False
        name, fields = named
        shown = {**ids_of(entry), "platform": self._platforms[entry.session], "at": entry.record.at, **fields}
        await self._send(stream, (name, shown), entry.position)
        return True

    async def _send_live(self, stream: EventStream, event: Event) -> bool:
        named = live_event(event)
        if named is None or not self._wanted.wants(named[0]):
            return False
        name, fields = named
        session = getattr(event, "session", None)
        if session is None:  # of an actor
            if is_owner() and not self._wanted.platform:
                await self._send(stream, named)
            return True
        if not await self._is_open(session):
            return False
        await self._send(stream, (name, {**ids_of(event), "platform": self._platforms[session], **fields}))
        return True

    async def _is_open(self, session: SessionId) -> bool:
        """Return whether the caller may see a session, and wants its platform."""
        if session not in self._platforms:
            if len(self._platforms) >= _MAX_REMEMBERED:
                self._platforms.clear()
            try:
                self._platforms[session] = (await self._sessions.conversation(session)).platform
            except UnknownSessionError:
                self._platforms[session] = None
        platform, key = self._platforms[session], CALLER.get(None)
        if platform is None or (key is not None and platform != key.platform):
            return False
        return self._wanted.platform in ("", platform)

    async def _send(self, stream: EventStream, named: Named, position: int | None = None) -> None:
        name, fields = named
        await stream.send_frame(frame(fields, name, "" if position is None else str(position)))


def _joined(events: list[Event]) -> list[Event]:
    """Join consecutive text of one turn: a write costs more than the text in it."""
    joined: list[Event] = []
    for event in events:
        last = joined[-1] if joined else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta) and last.turn == event.turn:
            joined[-1] = TextDelta(session=event.session, turn=event.turn, text=last.text + event.text)
        else:
            joined.append(event)
    return joined
