"""What an operator can see and do: actors, sessions whole, live events, dead letters, the store, stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from aiohttp import web

from hermes.adapters import presentation
from hermes.adapters.openai_api import parameter
from hermes.adapters.openai_api.connection import connection_of
from hermes.adapters.openai_api.event_stream import EventStream, open_stream
from hermes.adapters.openai_api.listener import until
from hermes.adapters.openai_api.service import Service, json_response, remember_session
from hermes.adapters.openai_api.session_api import MAX_MESSAGES, SessionApi
from hermes.errors import BadInputError
from hermes.ports import Subscription
from hermes.types import Session, SessionId

Change = Callable[[SessionId, str], Awaitable[Session]]
_MAX_REASON = 500


class OperatorApi:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._sessions = SessionApi(service)

    def routes(self) -> list[web.RouteDef]:
        sessions = self._service.sessions
        changes: dict[str, Change] = {
            "stop": sessions.stop_turn,
            "end": sessions.end,
            "suspend": sessions.suspend,
            "resume": sessions.resume,
        }
        return [
            web.get("/info", self.info),
            web.get("/actors", self.actors),
            web.get("/events", self.events),
            web.post("/stop", self.stop),
            web.get("/sessions", self._sessions.recent),
            web.get("/sessions/{id}", self.session),
            web.delete("/sessions/{id}", self._sessions.erase),
            web.get("/sessions/{id}/why", self.why),
            *(web.post(f"/sessions/{{id}}/{verb}", self._changing(change)) for verb, change in changes.items()),
            web.get("/dead-letters", self.dead_letters),
            web.post("/dead-letters/{id}/replay", self.replay),
            web.get("/store", self.store),
            web.post("/store/backup", self.backup),
            web.get("/store/verify", self.verify),
        ]

    # ------------------------------------------------------------ the daemon

    async def info(self, _request: web.Request) -> web.Response:
        return json_response(dict(self._service.operations.info()))

    async def actors(self, _request: web.Request) -> web.Response:
        return json_response({"actors": [presentation.plain(actor) for actor in self._service.operations.actors()]})

    async def stop(self, request: web.Request) -> web.Response:
        reason = await self._reason(request)
        self._service.operations.request_stop(reason)
        return json_response({"stopping": True, "reason": reason}, status=202)

    # ------------------------------------------------------------ sessions

    async def session(self, request: web.Request) -> web.Response:
        tail = parameter.integer(request, "tail", low=0, high=MAX_MESSAGES)
        view = await self._service.sessions.view(parameter.session_in_path(request))
        session = remember_session(request, view.session.id)
        limit = 20 if tail is None else tail
        stored = await self._service.sessions.messages(session, None, limit) if limit else []
        return json_response({**presentation.view(view), "transcript": presentation.transcript(stored)})

    async def why(self, request: web.Request) -> web.Response:
        view = await self._service.sessions.view(parameter.session_in_path(request))
        return json_response({"session_id": remember_session(request, view.session.id), "why": view.why})

    def _changing(self, change: Change) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            session = await change(parameter.session_in_path(request), await self._reason(request))
            remember_session(request, session.id)
            return json_response({"session": presentation.session(session)})

        return handle

    async def dead_letters(self, _request: web.Request) -> web.Response:
        letters = await self._service.sessions.dead_letters()
        return json_response({"dead_letters": [presentation.dead_letter(letter) for letter in letters]})

    async def replay(self, request: web.Request) -> web.Response:
        return json_response(presentation.plain(await self._service.sessions.replay(request.match_info["id"])))

    # ------------------------------------------------------------ the store

    async def store(self, _request: web.Request) -> web.Response:
        return json_response(presentation.plain(await self._service.operations.store_stats()))

    async def backup(self, request: web.Request) -> web.Response:
        path = (await self._object(request)).get("path")
        if not isinstance(path, str) or not path.startswith("/") or "\0" in path:
            raise BadInputError("path is an absolute path: the daemon has its own working directory.", param="path")
        await self._service.operations.backup(Path(path))
        return json_response({"path": path})

    async def verify(self, _request: web.Request) -> web.Response:
        return json_response({"problems": await self._service.operations.verify()})

    # ------------------------------------------------------------ live events

    async def events(self, request: web.Request) -> web.StreamResponse:
        session = parameter.session_in_query(request, "session")
        if session is not None:
            session = remember_session(request, (await self._service.sessions.view(session)).session.id)
        with closing(self._service.hub.subscribe(session=session)) as feed:
            stream = await open_stream(request)
            await until(self._forward(stream, feed), connection_of(request).lost, self._service.lifetime.leaving)
        return stream.response

    async def _forward(self, stream: EventStream, feed: Subscription) -> None:
        """Until the feed ends: a watcher that fell behind is told so, and can come back for the next events."""
        while True:
            try:
                async with asyncio.timeout(self._service.ping_s):
                    event = await anext(feed, None)
            except TimeoutError:
                await stream.ping()
                continue
            if event is None:
                await stream.send({"lagged": feed.lagged}, event="end")
                return
            await stream.send(presentation.plain(event), event=presentation.event_name(event))

    # ------------------------------------------------------------ bodies

    async def _reason(self, request: web.Request) -> str:
        reason = (await self._object(request)).get("reason", "asked for by the operator")
        if not isinstance(reason, str) or not 0 < len(reason) <= _MAX_REASON or "\0" in reason:
            raise BadInputError(f"reason is a text of 1 to {_MAX_REASON} characters.", param="reason")
        return reason

    async def _object(self, request: web.Request) -> dict[str, Any]:
        """The body, which may be left out."""
        body = await self._service.read_json(request) if request.can_read_body else {}
        if not isinstance(body, dict):
            raise BadInputError("The body is not a JSON object.")
        return body
