"""Admin API for named API keys: create, list, revoke."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from hermes.adapters.http.field import number, whole
from hermes.adapters.http.service import Service, json_response
from hermes.domain.access.api_key import KEY_ROLES, ApiKey
from hermes.domain.access.role import Role
from hermes.domain.errors import BadInputError
from hermes.services.keys import KeyService

_MAX_EXPIRES_S = 100 * 365 * 86_400
_MAX_TOKENS = 10**15
_MAX_USD = 10**9


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
        fields = await self._service.read_fields(request)
        name, role = fields.get("name"), fields.get("role", Role.USER)
        if not isinstance(name, str):
            raise BadInputError("name must be a text.", param="name", code="invalid_value")
        if role not in KEY_ROLES:
            raise BadInputError("role must be user or guest.", param="role", code="invalid_value")
        expires_s = fields.get("expires_s")
        key, text = await self._keys.create(
            name,
            role=Role(role),
            expires_s=None if expires_s is None else number(1, _MAX_EXPIRES_S)(expires_s, "expires_s"),
            day_tokens=whole(0, _MAX_TOKENS)(fields.get("budget_tokens", 0), "budget_tokens"),
            day_usd=number(0, _MAX_USD)(fields.get("budget_usd", 0), "budget_usd"),
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
