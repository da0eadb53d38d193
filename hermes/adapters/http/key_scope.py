"""Scope of named API keys: allowed routes and the daily budget.

A route that is not listed here is for the owner's key only. `OwnSessions` decides what a key may reach within a
route.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
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
        "POST /mcp",
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
_EVENT_STREAMS = frozenset({"GET /api/events", "GET /v1/runs/{id}/events"})
_FREE = ("/stop", "/cancel")  # changing requests that cost nothing
REFUSED_COMMANDS = frozenset({"processes", "why", "yolo"})  # why: it quotes the model endpoint


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
            if key is not None and _route(request) in _EVENT_STREAMS:
                return await self._while_valid(key, handler(request))
            return await handler(request)
        finally:
            CALLER.reset(token)

    async def _while_valid(self, key: ApiKey, answer: Awaitable[web.StreamResponse]) -> web.StreamResponse:
        """Send a stream that has no end of its own until the key is revoked or expires."""
        sent, ended = asyncio.ensure_future(answer), asyncio.ensure_future(self._keys.ended(key))
        try:
            await asyncio.wait((sent, ended), return_when=asyncio.FIRST_COMPLETED)
            if sent.done():
                return sent.result()
            state = ended.result()
        finally:
            for task in (sent, ended):
                task.cancel()
            await asyncio.gather(sent, ended, return_exceptions=True)
        logger.warning("api key {}: stream ended, key is {}", key.name, state)
        raise refusal(401, f"{state}_api_key", f"The key {key.name} is {state}: ask the owner for a new one.")

    async def _check_budget(self, request: web.Request, key: ApiKey) -> None:
        if request.method != "POST" or request.path.endswith(_FREE) or not (key.day_tokens or key.day_usd):
            return
        if key.has_spent(await self._keys.used_today(key)):
            logger.warning("api key {}: refused, daily budget is used up", key.name)
            message = f"The key {key.name} has used up its budget until 00:00 UTC. Nothing was stored."
            wait_s = self._keys.rest_of_today_s()
            raise ProblemError(Problem(status=402, code="key_budget_exceeded", message=message, retry_after_s=wait_s))


def _check_route(request: web.Request, key: ApiKey) -> None:
    route = _route(request)
    if route and route not in ROUTES:  # the handler answers an unknown route
        logger.warning("api key {}: refused {}", key.name, route)
        raise refusal(403, "not_for_this_key", "This route is for the owner's key only.")


def _route(request: web.Request) -> str:
    """Return method and path of the request's route; empty if there is none."""
    route = request.match_info.route
    return "" if route.resource is None else f"{route.method} {route.resource.canonical}"
