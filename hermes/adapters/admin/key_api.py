"""Admin API for named API keys: create, list, revoke."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from aiohttp import web
from msgspec import Meta

from hermes.adapters.http.schema import Fields, Text
from hermes.adapters.http.service import Service, json_response
from hermes.domain.access.api_key import ApiKey
from hermes.domain.access.role import Role
from hermes.services.keys import KeyService

_MAX_EXPIRES_S = 100 * 365 * 86_400
_MAX_TOKENS = 10**15
_MAX_USD = 10**9


class KeyRequest(Fields):
    name: Text
    role: Literal["user", "guest"] | None = None
    expires_s: Annotated[float, Meta(ge=1, le=_MAX_EXPIRES_S)] | None = None
    budget_tokens: Annotated[int, Meta(ge=0, le=_MAX_TOKENS)] | None = None
    budget_usd: Annotated[float, Meta(ge=0, le=_MAX_USD)] | None = None


class KeyApi:
    def __init__(self, service: Service, keys: KeyService) -> None:
        self._service = service
        self._keys = keys

    def table(self) -> list[tuple[web.RouteDef, str]]:
        return [
            (web.get("/keys", self.listed), "Named API keys, without their text"),
            (
                web.post("/keys", self.create),
                'Create a key: {"name": ..., "role": "user" or "guest"}; its text is shown once',
            ),
            (web.post("/keys/{name}/revoke", self.revoke), "Revoke a key"),
        ]

    async def listed(self, _request: web.Request) -> web.Response:
        return json_response({"keys": [await self._shown(key) for key in await self._keys.keys()]})

    async def create(self, request: web.Request) -> web.Response:
        asked = await self._service.read(request, KeyRequest)
        key, text = await self._keys.create(
            asked.name,
            role=Role(asked.role or Role.USER),
            expires_s=asked.expires_s,
            day_tokens=asked.budget_tokens or 0,
            day_usd=asked.budget_usd or 0,
        )
        return json_response({"key": await self._shown(key), "text": text.reveal()}, status=201)

    async def revoke(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        await self._keys.revoke(name)
        return json_response({"revoked": name})

    async def _shown(self, key: ApiKey) -> dict[str, Any]:
        used = await self._keys.used_today(key)
        return {
            "name": key.name,
            "role": key.role,
            "state": self._keys.state(key),
            "created_at": key.created_at,
            "expires_at": key.expires_at,
            "budget_tokens": key.day_tokens,
            "budget_usd": key.day_usd,
            "used_tokens": used.prompt_tokens + used.completion_tokens,
            "used_usd": used.cost_usd,
        }
