"""Requests on a session besides messages: steer, stop, fork, compress, answer, undo.

Any id of a lineage means its live end. Each answer contains the session afterwards.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from aiohttp import web
from msgspec import Meta

from hermes.adapters.http import parameter, presentation
from hermes.adapters.http.field import encode
from hermes.adapters.http.schema import Fields, FilledText, Text
from hermes.adapters.http.service import RECEIPT, Service, json_response, remember_session
from hermes.adapters.openai_api.turns.turn_wait import only_once
from hermes.domain.session.state import Session
from hermes.domain.text.title import MAX_TITLE
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Busy, Submission

MAX_TOPIC = 2_000
MAX_ANSWER = 10_000
MAX_UNDO = 1_000
STOPPED_BY_REQUEST = "requested over the API"


Title: TypeAlias = Annotated[FilledText, Meta(max_length=MAX_TITLE)]


class SteerRequest(Fields):
    text: FilledText


class StopBody(Fields):
    reason: Title | None = None


class ForkRequest(Fields):
    title: Title | None = None


class CompressRequest(Fields):
    topic: Annotated[FilledText, Meta(max_length=MAX_TOPIC)] | None = None


class AnswerRequest(Fields):
    answer: Annotated[FilledText, Meta(max_length=MAX_ANSWER)]
    call_id: Text | None = None


class UndoRequest(Fields):
    turns: Annotated[int, Meta(ge=1, le=MAX_UNDO)] | None = None


class SessionWishes:
    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/api/sessions/{id}/steer", self.steer),
            web.post("/api/sessions/{id}/stop", self.stop),
            web.post("/api/sessions/{id}/fork", self.fork),
            web.post("/api/sessions/{id}/compress", self.compress),
            web.post("/api/sessions/{id}/answer", self.answer),
            web.post("/api/sessions/{id}/undo", self.undo),
        ]

    async def steer(self, request: web.Request) -> web.Response:
        """Send a message to the running turn; without one it is an ordinary message."""
        service = self._service
        session = parameter.session_in_path(request)
        key = parameter.idempotency_key(request)
        asked = await service.read(request, SteerRequest)
        service.lifetime.check_intake()
        await service.sessions.view(session)  # must exist: a message would create it
        submission = Submission(
            turn=service.new_turn_id(),
            messages=(EncodedMessage(encode({"role": "user", "content": asked.text}, "text")),),
            source=service.source(request),
            session=session,
            busy=Busy.STEER,
        )
        receipt = await service.sessions.submit(only_once(submission, key, f"steer {session}"))
        request[RECEIPT] = receipt
        remember_session(request, receipt.session)
        body = {"session_id": receipt.session, "turn_id": receipt.turn, "handling": receipt.handling}
        return json_response(body, status=202)

    async def stop(self, request: web.Request) -> web.Response:
        asked = await self._service.read_optional(request, StopBody)
        reason = asked.reason or STOPPED_BY_REQUEST
        return _session_answer(
            request, await self._service.sessions.stop_turn(parameter.session_in_path(request), reason)
        )

    async def fork(self, request: web.Request) -> web.Response:
        asked = await self._service.read_optional(request, ForkRequest)
        branch = await self._service.sessions.branch(parameter.session_in_path(request), asked.title or "")
        return _session_answer(request, branch, status=201)

    async def compress(self, request: web.Request) -> web.Response:
        """Start a compression. It takes as long as a model call; messages wait meanwhile."""
        asked = await self._service.read_optional(request, CompressRequest)
        session = await self._service.sessions.compress(parameter.session_in_path(request), asked.topic or "")
        return _session_answer(request, session, status=202)

    async def answer(self, request: web.Request) -> web.Response:
        asked = await self._service.read(request, AnswerRequest)
        source = self._service.source(request)
        session = parameter.session_in_path(request)
        answered = await self._service.sessions.answer(session, asked.answer, source, asked.call_id or "")
        return _session_answer(request, answered)

    async def undo(self, request: web.Request) -> web.Response:
        asked = await self._service.read_optional(request, UndoRequest)
        session = parameter.session_in_path(request)
        return _session_answer(request, await self._service.sessions.undo(session, asked.turns or 1))


def _session_answer(request: web.Request, session: Session, status: int = 200) -> web.Response:
    remember_session(request, session.id)
    return json_response({"session_id": session.id, "session": presentation.session(session)}, status=status)
