"""POST /api/tokens: a short-lived token for the query string of event streams and file contents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from aiohttp import web
from msgspec import Meta

from hermes.adapters.http.key_scope import KEY
from hermes.adapters.http.problem import refusal
from hermes.adapters.http.schema import Fields
from hermes.adapters.http.service import Service, json_response
from hermes.adapters.http.stream_token import DEFAULT_TTL_S, MAX_TTL_S, StreamToken, TokenScope


class TokenRequest(Fields):
    scope: TokenScope | None = None
    ttl_s: Annotated[int, Meta(ge=1, le=MAX_TTL_S)] | None = None


class TokenApi:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._sign: Callable[[StreamToken], str] | None = service.sign_token

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/api/tokens", self.create)]

    async def create(self, request: web.Request) -> web.Response:
        if self._sign is None:
            raise refusal(409, "no_tokens_here", "This server has no keys, and so no tokens.")
        asked = await self._service.read_optional(request, TokenRequest)
        key = request.get(KEY)
        token = StreamToken(
            scope=asked.scope or TokenScope.EVENTS,
            key="" if key is None else key.name,
            expires_at=int(self._service.clock()) + (asked.ttl_s or DEFAULT_TTL_S),
        )
        body = {"token": self._sign(token), "scope": token.scope, "expires_at": token.expires_at}
        return json_response(body, status=201)
