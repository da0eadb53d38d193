"""Scope of named API keys: allowed routes and the daily budget.

A route that is not listed here is for the owner's key only. `OwnSessions` decides what a key may reach within a
route.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web
from loguru import logger

from hermes.adapters.http.caller import CALLER, is_owner
from hermes.adapters.http.problem import Problem, ProblemError, refusal
from hermes.domain.access.api_key import ApiKey
from hermes.services.keys import KeyService

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

KEY = web.RequestKey("key", ApiKey)

ROUTES = frozenset(
    {
        "POST /v1/chat/completions",
        "POST /v1/completions",
        "GET /v1/capabilities",
        "GET /v1/toolsets",
        "POST /api/sessions/{id}/chat",
        "POST /api/sessions/{id}/chat/stream",
        "GET /v1/models",
        "GET /v1/models/{id}",
        "POST /v1/responses",
        "GET /v1/responses/{id}",
        "DELETE /v1/responses/{id}",
        "POST /v1/responses/{id}/cancel",
        "GET /v1/responses/{id}/input_items",
        "POST /v1/runs",
        "GET /v1/runs",
        "GET /v1/runs/{id}",
        "GET /v1/runs/{id}/events",
        "POST /v1/runs/{id}/approval",
        "POST /v1/runs/{id}/answer",
        "POST /v1/runs/{id}/stop",
        "GET /api/approvals",
        "GET /api/approvals/{id}",
        "POST /api/approvals/{id}",
        "GET /api/events",
        "POST /api/tokens",
        "POST /v1/files",
        "GET /v1/files",
        "GET /v1/files/{id}",
        "DELETE /v1/files/{id}",
        "GET /v1/files/{id}/content",
        "GET /api/search",
        "GET /api/sessions",
        "POST /api/sessions",
        "PATCH /api/sessions/{id}",
        "GET /api/sessions/{id}",
        "DELETE /api/sessions/{id}",
        "GET /api/sessions/{id}/messages",
        "POST /api/sessions/{id}/steer",
        "POST /api/sessions/{id}/stop",
        "POST /api/sessions/{id}/fork",
        "POST /api/sessions/{id}/compress",
        "POST /api/sessions/{id}/answer",
        "POST /api/sessions/{id}/undo",
        "POST /api/sessions/{id}/commands",
        "GET /api/commands",
        "POST /api/commands",
    }
)
_FREE = ("/stop", "/cancel")  # changing requests that cost nothing
REFUSED_COMMANDS = frozenset({"processes", "yolo"})


def may_approve() -> bool:
    """Return True if the caller may allow tool calls. A named key may only deny them."""
    return is_owner()


class KeyScope:
    def __init__(self, keys: KeyService) -> None:
        self._keys = keys

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        key = request.get(KEY)
        if key is not None:
            _check_route(request, key)
            await self._check_budget(request, key)
        token = CALLER.set(key)
        try:
            return await handler(request)
        finally:
            CALLER.reset(token)

    async def _check_budget(self, request: web.Request, key: ApiKey) -> None:
        if request.method != "POST" or request.path.endswith(_FREE) or not (key.day_tokens or key.day_usd):
            return
        if key.has_spent(await self._keys.used_today(key)):
            logger.warning("api key {}: refused, daily budget is used up", key.name)
            message = f"The key {key.name} has used up its budget until 00:00 UTC. Nothing was stored."
            wait_s = self._keys.rest_of_today_s()
            raise ProblemError(Problem(status=402, code="key_budget_exceeded", message=message, retry_after_s=wait_s))


def _check_route(request: web.Request, key: ApiKey) -> None:
    resource = request.match_info.route.resource
    if resource is None:
        return  # unknown route: the handler answers
    if f"{request.match_info.route.method} {resource.canonical}" not in ROUTES:
        logger.warning("api key {}: refused {} {}", key.name, request.method, resource.canonical)
        raise refusal(403, "not_for_this_key", "This route is for the owner's key only.")
