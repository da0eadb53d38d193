"""Open approvals and questions of all sessions, and the answer to one of them."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from hermes.adapters.http.problem import refusal
from hermes.adapters.openai_api.runs.approval_api import question_id
from hermes.adapters.openai_api.session_wish_api import MAX_ANSWER
from hermes.adapters.openai_api.turns import pending
from hermes.domain.events import CallAsked
from hermes.domain.session.state import Session
from hermes.web.page_kit import PageKit, field, see


class ApprovalPage:
    def __init__(self, kit: PageKit) -> None:
        self._kit = kit

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/ui/approvals", self.show), web.post("/ui/approvals/{id}", self.answer)]

    async def show(self, request: web.Request) -> web.Response:
        return await self._kit.page(request, "approvals.html", **await approvals(self._kit))

    async def answer(self, request: web.Request) -> web.Response:
        said = field(request, "answer", most=MAX_ANSWER).strip()
        if not said:
            raise refusal(400, "invalid_value", "Choose an answer, or write one.")
        head, asked = await self._find(request.match_info["id"])
        await self._kit.service.sessions.answer(head.id, said, self._kit.source(request), asked.call)
        return see(f"/ui/sessions/{head.id}" if field(request, "from") == "session" else "/ui/approvals")

    async def _find(self, name: str) -> tuple[Session, CallAsked]:
        for head, asked in await _open_questions(self._kit):
            if question_id(asked) == name:
                return head, asked
        raise refusal(
            404, "approval_not_found", "This question is not open any more: it was answered, or its turn ended."
        )


async def approvals(kit: PageKit) -> dict[str, Any]:
    found = await _open_questions(kit)
    return {"questions": [shown_question(head, asked) for head, asked in found]}


async def _open_questions(kit: PageKit) -> list[tuple[Session, CallAsked]]:
    heads = await kit.service.sessions.unfinished()
    found = ((head, pending.asked_in(head)) for head in heads)
    return [(head, asked) for head, asked in found if asked is not None]


def shown_question(head: Session, asked: CallAsked) -> dict[str, Any]:
    return {"id": question_id(asked), "session": head, "asked": asked}
