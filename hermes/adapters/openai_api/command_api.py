"""Slash commands over HTTP: list them, or run one in a session. A turn that a command starts is an ordinary turn."""

from __future__ import annotations

from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta

from hermes.adapters.http import parameter
from hermes.adapters.http.schema import Fields, Text
from hermes.adapters.http.service import RECEIPT, Service, json_response, remember_session
from hermes.adapters.openai_api.command_once import run_once
from hermes.adapters.openai_api.turns.turn_wait import only_once
from hermes.domain.errors import BadInputError
from hermes.domain.ids import SessionId
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Submission
from hermes.services.commands.registry import menu, parse

_PATTERN = r"^/\w[\w-]{0,31}(@\w{1,64})?(\s[^\u0000]*)?$"


class CommandRequest(Fields):
    text: Annotated[str, Meta(pattern=_PATTERN, description="a command: a slash and one word, then arguments")]
    user: Text | None = None


class CommandApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/commands", self.listed),
            web.post("/api/commands", self.run_anywhere),
            web.post("/api/sessions/{id}/commands", self.run),
        ]

    async def listed(self, request: web.Request) -> web.Response:
        role = self._service.source(request).standing
        return json_response({"commands": menu(role, self._service.commands.added(role))})

    async def run_anywhere(self, request: web.Request) -> web.Response:
        """Run a command without a session: one that needs none, or that starts one."""
        return await self._run(request, None)

    async def run(self, request: web.Request) -> web.Response:
        view = await self._service.sessions.view(parameter.session_in_path(request))
        return await self._run(request, remember_session(request, view.session.id))

    async def _run(self, request: web.Request, session: SessionId | None) -> web.Response:
        service = self._service
        key = parameter.idempotency_key(request)
        asked = await service.read(request, CommandRequest)
        parsed = parse(asked.text)
        if parsed is None:
            message = "text must be a command: a slash and one word. GET /api/commands lists them."
            raise BadInputError(message, param="text", code="not_a_command")
        submission = Submission(
            turn=service.new_turn_id(),
            messages=(EncodedMessage(msgspec.json.encode(asked)),),
            source=service.source(request, asked.user or ""),
            session=session,
        )
        reply = await run_once(service, parsed, only_once(submission, key, session or ""))
        if reply.session is not None:
            session = remember_session(request, reply.session)
        if reply.receipt is not None:
            request[RECEIPT] = reply.receipt
        return json_response(
            {
                "ok": reply.ok,
                "text": reply.text,
                "session_id": session,
                "turn_id": None if reply.receipt is None else reply.receipt.turn,
                "rows": [list(row) for row in reply.rows],
                "choices": list(reply.choices),
            }
        )
