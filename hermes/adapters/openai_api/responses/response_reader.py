"""Stored responses: read or stream one, list its input, cancel it, delete its id."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from hermes.adapters.http.parameter import Flag, is_set, query
from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.http.schema import Fields, FilledText
from hermes.adapters.http.service import Service, json_response, remember_session
from hermes.adapters.openai_api.responses.response_object import Answering
from hermes.adapters.openai_api.responses.response_stream import ResponseStream, late_follower
from hermes.adapters.openai_api.session_wish_api import STOPPED_BY_REQUEST
from hermes.adapters.openai_api.turns.placement import gone_fact, is_gone
from hermes.adapters.openai_api.turns.token_parameter import not_found, read_token
from hermes.adapters.openai_api.turns.turn_view import received_in, turn_of
from hermes.adapters.openai_api.turns.turn_wait import while_wanted
from hermes.domain.events import TurnGaveUp
from hermes.domain.ids import RESPONSE, TurnToken
from hermes.domain.read.views import TurnRecord
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Receipt

GONE = b"1"
MAX_ITEMS = 100


class ResponseQuery(Fields):
    stream: Flag = "0"
    starting_after: Annotated[int, Meta(ge=0, le=2**63 - 1)] | UnsetType = UNSET


class InputItemsQuery(Fields):
    limit: Annotated[int, Meta(ge=1, le=MAX_ITEMS)] = 20
    order: Literal["asc", "desc"] = "desc"
    after: FilledText | UnsetType = UNSET


class ResponseReader:
    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/responses/{id}", self.one),
            web.delete("/v1/responses/{id}", self.delete),
            web.post("/v1/responses/{id}/cancel", self.cancel),
            web.get("/v1/responses/{id}/input_items", self.input_items),
        ]

    async def one(self, request: web.Request) -> web.StreamResponse:
        asked = query(request, ResponseQuery)
        token, records = await self._find(request)
        if not is_set(asked.stream):
            return json_response(await self._object(request, token, records))
        stream = ResponseStream(
            service=self._service,
            answering=_answering(token, records),
            token=token,
            after=-1 if isinstance(asked.starting_after, UnsetType) else asked.starting_after,
        )
        work = stream.send(request, late_follower(self._service, token))
        return await while_wanted(self._service, request, Receipt(session=token.session, turn=token.turn), work)

    async def cancel(self, request: web.Request) -> web.Response:
        """Stop the turn with its tools and questions. A response that is over stays as it is."""
        token, records = await self._find(request)
        turn = turn_of(records, token.turn)
        await self._service.sessions.stop_turn(token.session, STOPPED_BY_REQUEST, turn)
        records = await self._service.sessions.records(token.session, token.turn)
        return json_response(await self._object(request, token, records))

    async def input_items(self, request: web.Request) -> web.Response:
        asked = query(request, InputItemsQuery)
        token, records = await self._find(request)
        received = received_in(records)
        items = input_of(received.messages if received is not None else (), token.text(""))
        return json_response(page_of(items if asked.order == "asc" else items[::-1], asked.limit, asked.after or ""))

    async def delete(self, request: web.Request) -> web.Response:
        token, _ = await self._find(request)
        await self._service.sessions.remember(gone_fact(token.turn), GONE)
        return json_response({"id": token.text(RESPONSE), "object": "response", "deleted": True})

    async def _find(self, request: web.Request) -> tuple[TurnToken, list[TurnRecord]]:
        text = request.match_info["id"]
        token = read_token(text, RESPONSE)
        records = await self._service.sessions.records(token.session, token.turn)
        if not records or await is_gone(self._service.sessions, token):
            raise not_found(text, RESPONSE)
        return token, records

    async def _object(self, request: web.Request, token: TurnToken, records: list[TurnRecord]) -> JsonObject:
        sessions = self._service.sessions
        outcome = await sessions.outcome(token.session, token.turn)
        session = outcome.session if outcome is not None else (await sessions.view(token.session)).session.id
        remember_session(request, session)
        answering = Answering(id=token.text(RESPONSE), turn=token.turn, session=session)
        return answering.object(records, gave_up=outcome if isinstance(outcome, TurnGaveUp) else None)


def _answering(token: TurnToken, records: Sequence[TurnRecord]) -> Answering:
    return Answering(id=token.text(RESPONSE), turn=token.turn, session=records[-1].session)


def input_of(messages: Sequence[EncodedMessage], response: str) -> list[JsonObject]:
    """Return the messages of a request as items, oldest first."""
    return [_item(json.loads(message), f"in_{response}_{index}") for index, message in enumerate(messages)]


def _item(message: dict[str, Any], name: str) -> JsonObject:
    content = message.get("content") or ""
    if message["role"] == "tool":
        call = message.get("tool_call_id", "")
        return {"id": name, "type": "function_call_output", "call_id": call, "output": content, "status": "completed"}
    kind = "output_text" if message["role"] == "assistant" else "input_text"
    parts = [{"type": kind, "text": content}] if isinstance(content, str) else content
    return {"id": name, "type": "message", "role": message["role"], "content": parts, "status": "completed"}


def page_of(items: Sequence[JsonObject], limit: int, after: str) -> JsonObject:
    """Return a page of items after one of them. An unknown one has nothing after it."""
    names = [item["id"] for item in items]
    first = (names.index(after) + 1 if after in names else len(names)) if after else 0
    page = items[first : first + limit]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": first + limit < len(items),
    }
