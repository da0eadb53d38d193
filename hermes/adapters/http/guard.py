"""Access control of the API over TCP: Host, Origin, and the owner's key or a named key.

The key is required on loopback, too: every program and web page on the machine can connect. Host is checked against
DNS rebinding, except on the open routes, which reveal nothing and which probes reach by any address.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from aiohttp import web
from loguru import logger

from hermes.adapters.http import parameter, stream_token
from hermes.adapters.http.connection import connection_of
from hermes.adapters.http.key_scope import KEY
from hermes.adapters.http.pages import Pages
from hermes.adapters.http.problem import Problem, ProblemError, refusal
from hermes.domain.access.api_key import ApiKey, KeyState
from hermes.ports.given import Clock
from hermes.services.keys import KeyService

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::[0-9]{1,5})?")
_ALLOWED_HEADERS = (
    "Authorization",
    "Content-Type",
    parameter.IDEMPOTENCY_HEADER,
    parameter.SESSION_HEADER,
    parameter.CANCEL_HEADER,
    parameter.EVENTS_HEADER,
    parameter.KEY_HEADER,
    parameter.LAST_EVENT_HEADER,
)
_SEND_THE_KEY = (
    "Send the API key as `Authorization: Bearer KEY`. It is in the file api.key of Hermes' home, or where "
    "HERMES_API_KEY or api.key_file point; `hermes keys create` creates keys for others."
)
_EXPOSED_HEADERS = (
    parameter.SESSION_HEADER,
    parameter.TURN_HEADER,
    parameter.REPLAY_HEADER,
    parameter.COMPLETED_HEADER,
    parameter.PARTIAL_HEADER,
    parameter.ERROR_HEADER,
    "Retry-After",
    parameter.SHOULD_RETRY_HEADER,
)


class RequestGuard:
    def __init__(
        self,
        *,
        key: str,
        keys: KeyService,
        host: str,
        allowed_hosts: Iterable[str],
        cors_origins: Iterable[str],
        clock: Clock,
        pages: Pages | None = None,
    ) -> None:
        self._pages = pages
        self._keys = keys
        self._key = key
        self._clock = clock
        self._authorization = f"Bearer {key}"  # as most clients send it
        self._key_hash = hashlib.sha256(key.encode()).digest()
        self._hosts = {_bare(name) for name in (host, *allowed_hosts)}
        self.cors_origins = frozenset(cors_origins)

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._pages is not None and self._pages.owns(request.path):
            await self._pages.prepare(request)
            self._check_host(request)
            return await self._pages.admit(request, handler)
        is_open = request.path in OPEN_PATHS or request.path == WELCOME_PATH or request.path.startswith(HOOK_PATH)
        if not is_open:
            self._check_host(request)
        origin = request.headers.get("Origin")
        if origin is not None and origin not in self.cors_origins:
            raise refusal(403, "origin_not_allowed", "This origin is not allowed (api.cors_origins).")
        if origin is not None and request.method == "OPTIONS":
            return self._preflight(request)
        if not is_open:
            await self._check_key(request)
            connection_of(request).is_known()
        return await handler(request)

    async def add_cors_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        origin = request.headers.get("Origin")
        if origin in self.cors_origins:
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Access-Control-Expose-Headers"] = ", ".join(_EXPOSED_HEADERS)
        response.headers["Vary"] = "Origin"

    def _check_host(self, request: web.Request) -> None:
        match = _HOST.fullmatch(request.headers.get("Host", ""))
        name = _bare(match[1]) if match else ""
        if name not in self._hosts and not _is_loopback(name):
            message = "This host name is not allowed (api.allowed_hosts)."
            raise refusal(421, "host_not_allowed", message)

    async def _check_key(self, request: web.Request) -> None:
        """Check the owner's key or a named key. A named key is stored in the request."""
        if await self._check_token(request):
            return
        authorization = parameter.header(request, "Authorization") or ""
        if authorization.isascii() and hmac.compare_digest(authorization, self._authorization):
            return
        scheme, _, given = authorization.partition(" ")
        given = given.strip()
        if scheme.lower() != "bearer" or not given:
            raise _unauthorized("invalid_api_key", _SEND_THE_KEY)
        given_hash = hashlib.sha256(given.encode("utf-8", "surrogateescape")).digest()
        if hmac.compare_digest(given_hash, self._key_hash):
            return
        self._accept(request, await self._keys.find(given))

    async def _check_token(self, request: web.Request) -> bool:
        """Check a token in the query string. False: the request has none."""
        resource = request.match_info.route.resource
        scope = None if resource is None else stream_token.ROUTES.get(resource.canonical)
        if scope is None or request.method != "GET" or "token" not in request.query:
            return False
        token = stream_token.read(request.query["token"], self._key, self._clock())
        if token is None or token.scope is not scope:
            raise _unauthorized("invalid_token", "The token is wrong, expired or for another route.")
        if token.key:
            keys = await self._keys.keys()
            self._accept(request, next((key for key in keys if key.name == token.key), None))
        return True

    def _accept(self, request: web.Request, key: ApiKey | None) -> None:
        """Store a named key in the request. Raises ProblemError if it is not valid."""
        if key is None:
            raise _unauthorized("invalid_api_key", f"The API key is wrong. {_SEND_THE_KEY}")
        if (state := self._keys.state(key)) is not KeyState.ACTIVE:
            logger.warning("api key {}: refused, key is {}", key.name, state)
            raise _unauthorized(f"{state}_api_key", f"The key {key.name} is {state}: ask the owner for a new one.")
        request[KEY] = key

    def _preflight(self, request: web.Request) -> web.Response:
        asked = request.headers.get("Access-Control-Request-Headers", "").split(",")
        # added by the OpenAI client for browsers, under changing names
        stainless = [
            name.strip() for name in asked if re.fullmatch(r"\s*x-stainless-[a-z-]+\s*", name, re.IGNORECASE)
        ]
        headers = {
            "Access-Control-Allow-Methods": "GET, POST, PATCH, DELETE",
            "Access-Control-Allow-Headers": ", ".join([*_ALLOWED_HEADERS, *stainless]),
            "Access-Control-Max-Age": "600",
        }
        return web.Response(status=204, headers=headers)


def _unauthorized(code: str, message: str) -> ProblemError:
    headers = {"WWW-Authenticate": 'Bearer realm="hermes"'}
    return ProblemError(Problem(status=401, code=code, message=message, headers=headers))


def _bare(name: str) -> str:
    return name.strip("[]").rstrip(".").lower()


@lru_cache(maxsize=64)
def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


WELCOME_PATH = "/"
HOOK_PATH = "/hooks/"  # webhooks: each has a signature of its own, and a proxy gives them any host name
OPEN_PATHS = frozenset({"/health", "/v1/health", "/health/ready", "/openapi.json"})
