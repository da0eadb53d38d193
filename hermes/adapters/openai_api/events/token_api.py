"""POST /api/tokens: a short-lived token for the query string of event streams and file contents."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from hermes.adapters.http.field import whole
from hermes.adapters.http.key_scope import KEY
from hermes.adapters.http.problem import refusal
from hermes.adapters.http.service import Service, json_response
from hermes.adapters.http.stream_token import DEFAULT_TTL_S, MAX_TTL_S, StreamToken, TokenScope
from hermes.domain.errors import BadInputError


class TokenApi:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._sign: Callable[[StreamToken], str] | None = service.sign_token

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/api/tokens", self.create)]

    async def create(self, request: web.Request) -> web.Response:
        if self._sign is None:
            raise refusal(409, "no_tokens_here", "This server has no keys, and so no tokens.")
        fields = await self._service.read_fields(request)
        scope = fields.get("scope", TokenScope.EVENTS)
        if scope not in set(TokenScope):
            raise BadInputError(f"scope must be one of {', '.join(TokenScope)}.", param="scope", code="invalid_value")
        ttl_s = whole(1, MAX_TTL_S)(fields.get("ttl_s", DEFAULT_TTL_S), "ttl_s")
        key = request.get(KEY)
        token = StreamToken(
            scope=TokenScope(scope),
            key="" if key is None else key.name,
            expires_at=int(self._service.clock()) + ttl_s,
        )
        body = {"token": self._sign(token), "scope": token.scope, "expires_at": token.expires_at}
        return json_response(body, status=201)
