"""Changes of a session by forms: reply, stop, rename, compress, undo, branch, suspend, resume, end, and a new one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from loguru import logger

from hermes.adapters.http import parameter
from hermes.adapters.http.field import encode
from hermes.adapters.http.problem import refusal
from hermes.adapters.http.service import json_response
from hermes.adapters.openai_api.file_api import FileApi
from hermes.domain.ids import SessionId
from hermes.domain.session.state import Session
from hermes.domain.text.title import MAX_TITLE
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Busy, Submission
from hermes.services.commands.registry import Parsed, Unknown, parse
from hermes.services.commands.reply import CommandCaller
from hermes.web.page_kit import FORM, LOGIN, PageKit, field, see

MAX_TEXT = 500_000
_MAX_FILES = 10

Change = Callable[[web.Request, SessionId], Awaitable[Session]]


class SessionActions:
    def __init__(self, kit: PageKit) -> None:
        self._kit = kit

    def routes(self) -> list[web.RouteDef]:
        changes: dict[str, tuple[Change, bool]] = {  # and whether the API key is not enough
            "stop": (self._stop, False),
            "rename": (self._rename, False),
            "compress": (self._compress, False),
            "undo": (self._undo, False),
            "branch": (self._branch, False),
            "suspend": (self._suspend, True),
            "resume": (self._resume, True),
            "end": (self._end, True),
        }
        actions = [
            web.post(f"/ui/sessions/{{id}}/{name}", self._changing(name, change, needs_operator=only))
            for name, (change, only) in changes.items()
        ]
        return [
            web.post("/ui/sessions", self.begin),
            web.post("/ui/sessions/{id}/messages", self.reply),
            web.post("/ui/files", FileApi(self._kit.service).upload),
            *actions,
        ]

    async def begin(self, request: web.Request) -> web.Response:
        self._kit.service.lifetime.check_intake()
        session = await self._kit.service.sessions.begin(self._kit.source(request))
        return see(f"/ui/sessions/{session.id}")

    async def reply(self, request: web.Request) -> web.Response:
        service, session = self._kit.service, parameter.session_in_path(request)
        text = field(request, "text", most=MAX_TEXT).replace("\r\n", "\n").strip()
        files = request[FORM].get("file", [])[:_MAX_FILES]
        if not text and not files:
            raise refusal(400, "invalid_value", "Write a message, or attach a file.")
        busy = field(request, "busy")
        if busy and busy not in list(Busy):
            raise refusal(400, "invalid_value", "There is no such choice for a running turn.")
        service.lifetime.check_intake()
        await service.sessions.view(session)  # must exist: a message would create it
        if not files and (command := parse(text)) is not None and request[LOGIN].is_operator:
            return await self._command(request, session, command)
        message = await self._message(request, text, files)
        submission = Submission(
            turn=service.new_turn_id(),
            messages=(EncodedMessage(encode(message, "text")),),
            source=self._kit.source(request),
            session=session,
            busy=busy,
        )
        receipt = await service.sessions.submit(submission)
        logger.info("dashboard: message {} of session {} accepted", receipt.turn, receipt.session)
        return see(f"/ui/sessions/{receipt.session}#end")

    async def _command(self, request: web.Request, session: SessionId, command: Parsed | Unknown) -> web.Response:
        """Run a slash command. The script shows its reply; without scripts its effect is seen on the page."""
        caller = CommandCaller(source=self._kit.source(request), session=session)
        reply = await self._kit.service.commands.run(command, caller)
        place = f"/ui/sessions/{reply.session or session}"
        if "text/html" in request.headers.get("Accept", ""):
            return see(place)
        return json_response({"text": reply.text, "ok": reply.ok, "place": place})

    async def _message(self, request: web.Request, text: str, files: list[str]) -> dict[str, Any]:
        inputs = self._kit.service.inputs
        if not files or inputs is None:
            return {"role": "user", "content": text}
        parts = [{"type": "text", "text": text}] if text else []
        attached = [{"type": "file", "file": {"file_id": each}} for each in files]
        message = {"role": "user", "content": [*parts, *attached]}
        resolved = await inputs.resolve({"messages": [message]}, self._kit.service.owner(request))
        return dict(resolved["messages"][0])

    def _changing(
        self, name: str, change: Change, *, needs_operator: bool
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            if needs_operator:
                self._kit.check_operator(request)
            session = await change(request, parameter.session_in_path(request))
            logger.info("session {}: {} by {}", session.id, name, request[LOGIN].who)
            return see(f"/ui/sessions/{session.id}")

        return handle

    async def _stop(self, request: web.Request, session: SessionId) -> Session:
        who = self._kit.source(request).by
        return await self._kit.service.sessions.stop_turn(session, _reason(request), who=who)

    async def _rename(self, request: web.Request, session: SessionId) -> Session:
        title = field(request, "title", most=MAX_TITLE)
        return await self._kit.service.sessions.prefer(session, "title", title, _reason(request))

    async def _compress(self, _request: web.Request, session: SessionId) -> Session:
        return await self._kit.service.sessions.compress(session)

    async def _undo(self, _request: web.Request, session: SessionId) -> Session:
        return await self._kit.service.sessions.undo(session, 1)

    async def _branch(self, _request: web.Request, session: SessionId) -> Session:
        return await self._kit.service.sessions.branch(session)

    async def _suspend(self, request: web.Request, session: SessionId) -> Session:
        return await self._kit.service.sessions.suspend(session, _reason(request))

    async def _resume(self, request: web.Request, session: SessionId) -> Session:
        return await self._kit.service.sessions.resume(session, _reason(request))

    async def _end(self, request: web.Request, session: SessionId) -> Session:
        who = self._kit.source(request).by
        return await self._kit.service.sessions.end(session, _reason(request), who=who)


def _reason(request: web.Request) -> str:
    return f"requested in the {request[LOGIN].who}"
