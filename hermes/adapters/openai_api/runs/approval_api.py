"""Open approvals and questions of all sessions: the list, and an answer by id.

An id names one tool call of one turn. After the answer, or when another call asks, the id is unknown.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, Literal

from aiohttp import web
from msgspec import Meta

from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.http.problem import refusal
from hermes.adapters.http.schema import Fields, FilledText
from hermes.adapters.http.service import Service, json_response, remember_session
from hermes.adapters.openai_api.session_wish_api import MAX_ANSWER
from hermes.adapters.openai_api.turns import pending
from hermes.domain.events import CallAsked
from hermes.domain.ids import RUN, TurnToken
from hermes.domain.session.state import Session


class ApprovalAnswer(Fields):
    """`choice` for an approval, `answer` for a question."""

    choice: Literal["once", "session", "always", "deny"] | None = None
    answer: Annotated[FilledText, Meta(max_length=MAX_ANSWER)] | None = None


class ApprovalApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/approvals", self.all),
            web.get("/api/approvals/{id}", self.one),
            web.post("/api/approvals/{id}", self.answer),
        ]

    async def all(self, _request: web.Request) -> web.Response:
        found = await self._open()
        return json_response({"approvals": [_shown(head, asked) for head, asked in found]})

    async def one(self, request: web.Request) -> web.Response:
        return json_response(_shown(*await self._find(request)))

    async def answer(self, request: web.Request) -> web.Response:
        """Approve or deny with `choice`, or answer a question with `answer`."""
        given = await self._service.read(request, ApprovalAnswer)
        head, asked = await self._find(request)
        name = "choice" if asked.approval else "answer"
        said = given.choice if asked.approval else given.answer
        if said is None:
            raise refusal(409, "wrong_answer", f"This one needs {name}.")
        remember_session(request, head.id)
        await self._service.sessions.answer(head.id, said, self._service.source(request), asked.call)
        return json_response({"id": question_id(asked), "answered": True, "session_id": head.id})

    async def _find(self, request: web.Request) -> tuple[Session, CallAsked]:
        wanted = request.match_info["id"]
        for head, asked in await self._open():
            if question_id(asked) == wanted:
                return head, asked
        raise refusal(404, "approval_not_found", f"No approval or question {wanted[:80]!r} is open.")

    async def _open(self) -> list[tuple[Session, CallAsked]]:
        heads = await self._service.sessions.unfinished()
        found = ((head, pending.asked_in(head)) for head in heads)
        return [(head, asked) for head, asked in found if asked is not None]


def question_id(asked: CallAsked) -> str:
    named = f"{asked.session}\0{asked.turn}\0{asked.call}"
    return f"ask_{sha256(named.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _shown(head: Session, asked: CallAsked) -> JsonObject:
    return {
        "id": question_id(asked),
        **pending.field(asked),
        "name": asked.name,
        "run_id": TurnToken(session=head.id, turn=asked.turn).text(RUN),
        "asked_at": head.since,
        "title": head.preferences.title,
        "platform": head.platform,
    }
