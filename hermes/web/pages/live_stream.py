"""Server-sent events of the pages: samples for charts, live parts of pages, and the events of sessions.

A live part is sent as HTML when it has changed, so that pages have one renderer. Samples and session events have ids:
a browser that connects again gets what it missed.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from aiohttp import web

from hermes.adapters.http.connection import connection_of
from hermes.adapters.http.event_stream import STREAM, EventStream, frame, open_stream
from hermes.adapters.http.listener import until
from hermes.adapters.http.parameter import LAST_EVENT_HEADER
from hermes.adapters.http.service import json_response
from hermes.adapters.openai_api.events.event_api import EventApi
from hermes.web.page_kit import LOGIN, PageKit
from hermes.web.pages.actor_page import actor_map
from hermes.web.pages.approval_page import approvals
from hermes.web.pages.overview_page import overview
from hermes.web.pages.process_page import process, processes

T = TypeVar("T")
PERIOD_S: Final = 2.0
STREAM_S: Final = 3600.0  # then the browser connects again, and its login is checked again


class LiveStream:
    def __init__(self, kit: PageKit, period_s: float = PERIOD_S) -> None:
        self._kit = kit
        self._period_s = period_s
        self._events = EventApi(kit.service)
        self._parts: dict[str, tuple[str, Callable[[], Awaitable[dict[str, Any]]]]] = {
            "overview": ("overview_live.html", lambda: overview(kit)),
            "actors": ("actors_live.html", lambda: actor_map(kit)),
            "approvals": ("approvals_live.html", lambda: approvals(kit)),
            "processes": ("processes_live.html", lambda: _done(processes(kit))),
        }

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/ui/samples", self.samples),
            web.get("/ui/live/{part}", self.part),
            web.get("/ui/live/process/{id}", self.process),
            web.get("/ui/live-samples", self.new_samples),
            web.get("/ui/events", self.session_events),
        ]

    async def samples(self, _request: web.Request) -> web.Response:
        """Return the kept samples, oldest first."""
        return json_response({"samples": [dataclasses.asdict(each) for each in self._kit.parts.figures.after(0)]})

    async def new_samples(self, request: web.Request) -> web.StreamResponse:
        """Send each new sample; after a break, those that were missed."""
        last = request.headers.get(LAST_EVENT_HEADER) or request.query.get("after", "")
        figures = self._kit.parts.figures
        latest = figures.latest
        start = int(last) if re.fullmatch(r"[0-9]{1,15}", last) else latest.number if latest else 0
        return await self._stream(request, lambda stream: self._send_samples(stream, start))

    async def _send_samples(self, stream: EventStream, number: int) -> None:
        figures = self._kit.parts.figures
        while True:
            for each in figures.after(number):
                await stream.send_frame(frame(dataclasses.asdict(each), "sample", str(each.number)))
                number = each.number
            try:
                async with asyncio.timeout(self._kit.service.ping_s):
                    await figures.next()
            except TimeoutError:
                await stream.ping()

    async def part(self, request: web.Request) -> web.StreamResponse:
        """Send a live part of a page whenever it has changed."""
        if request.match_info["part"] not in self._parts:
            raise web.HTTPNotFound
        template, context = self._parts[request.match_info["part"]]
        return await self._stream(request, lambda stream: self._send_part(request, stream, template, context))

    async def process(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["id"]
        await process(self._kit, name)  # it exists
        work = (request, "process_live.html", lambda: process(self._kit, name))
        return await self._stream(request, lambda stream: self._send_part(work[0], stream, work[1], work[2]))

    async def _send_part(
        self,
        request: web.Request,
        stream: EventStream,
        template: str,
        context: Callable[[], Awaitable[dict[str, Any]]],
    ) -> None:
        clock = asyncio.get_running_loop().time
        shown, sent_at = "", 0.0
        while True:
            html = await self._kit.fragment(request, template, **await context())
            if html != shown:
                await stream.send({"html": html}, event="part")
                shown, sent_at = html, clock()
            elif clock() - sent_at >= self._kit.service.ping_s:
                await stream.ping()
                sent_at = clock()
            await asyncio.sleep(self._period_s)

    async def session_events(self, request: web.Request) -> web.StreamResponse:
        """Send the events of a session, as GET /api/events does."""
        return await self._while_logged_in(request, self._events.events(request))

    async def _stream(
        self, request: web.Request, send: Callable[[EventStream], Coroutine[Any, Any, None]]
    ) -> web.StreamResponse:
        connection = connection_of(request)
        connection.follows()
        stream = await open_stream(request)
        ends = (connection.lost, self._kit.service.lifetime.leaving)
        return await self._while_logged_in(request, _to_the_end(stream, until(send(stream), *ends)))

    async def _while_logged_in(
        self, request: web.Request, answer: Coroutine[Any, Any, web.StreamResponse]
    ) -> web.StreamResponse:
        """Send a stream until its login ends, at most for an hour."""
        ended = asyncio.ensure_future(request[LOGIN].ended.wait())
        timer = asyncio.ensure_future(asyncio.sleep(STREAM_S))
        try:
            response = await until(answer, ended, timer)
        finally:
            ended.cancel()
            timer.cancel()
        return request[STREAM].response if response is None else response


async def _to_the_end(stream: EventStream, work: Coroutine[Any, Any, None]) -> web.StreamResponse:
    await work
    return stream.response


async def _done(value: T) -> T:
    return value
