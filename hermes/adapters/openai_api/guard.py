"""Who may use the API over TCP: the right Host, a listed Origin if there is one, and the key.

The key is demanded on loopback too: every program and every web page on the machine can reach it. Host is checked
against DNS rebinding, except where nothing is given away (the open routes, which probes reach by any address).
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

from hermes.adapters.openai_api import parameter
from hermes.adapters.openai_api.health_api import OPEN_PATHS
from hermes.adapters.openai_api.problem import Problem, ProblemError, refusal

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::[0-9]{1,5})?")
_ALLOWED_HEADERS = (
    "Authorization",
    "Content-Type",
    parameter.IDEMPOTENCY_HEADER,
    parameter.SESSION_HEADER,
    parameter.CANCEL_HEADER,
    parameter.LAST_EVENT_HEADER,
)
_EXPOSED_HEADERS = (parameter.SESSION_HEADER, parameter.TURN_HEADER, parameter.REPLAY_HEADER, "Retry-After")


class Guard:
    def __init__(self, *, key: str, host: str, allowed_hosts: Iterable[str], cors_origins: Iterable[str]) -> None:
        self._key_hash = hashlib.sha256(key.encode()).digest()
        self._hosts = {_bare(name) for name in (host, *allowed_hosts)}
        self.cors_origins = frozenset(cors_origins)

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        is_open = request.path in OPEN_PATHS
        if not is_open:
            self._check_host(request)
        origin = request.headers.get("Origin")
        if origin is not None and origin not in self.cors_origins:
            raise refusal(
                403, "origin_not_allowed", "Web pages of this origin may not use this API (api.cors_origins)."
            )
        if origin is not None and request.method == "OPTIONS":
            return self._preflight(request)
        if not is_open:
            self._check_key(request)
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
            message = "This name is not one of this server's (api.allowed_hosts), so the request is not for it."
            raise refusal(421, "host_not_allowed", message)

    def _check_key(self, request: web.Request) -> None:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        given_hash = hashlib.sha256(given.strip().encode("utf-8", "surrogateescape")).digest()
        if not hmac.compare_digest(given_hash, self._key_hash) or scheme.lower() != "bearer":
            wrong = "This is not the API key. " if given.strip() and scheme.lower() == "bearer" else ""
            where = "It is in the file api.key of Hermes' home, unless HERMES_API_KEY or api.key_file names another."
            message = f"{wrong}Send the API key as `Authorization: Bearer KEY`. {where}"
            headers = {"WWW-Authenticate": 'Bearer realm="hermes"'}
            raise ProblemError(Problem(status=401, code="invalid_api_key", message=message, headers=headers))

    def _preflight(self, request: web.Request) -> web.Response:
        asked = request.headers.get("Access-Control-Request-Headers", "").split(",")
        # what the OpenAI client for browsers adds to each request, under names that change
        stainless = [
            name.strip() for name in asked if re.fullmatch(r"\s*x-stainless-[a-z-]+\s*", name, re.IGNORECASE)
        ]
        headers = {
            "Access-Control-Allow-Methods": "GET, POST, DELETE",
            "Access-Control-Allow-Headers": ", ".join([*_ALLOWED_HEADERS, *stainless]),
            "Access-Control-Max-Age": "600",
        }
        return web.Response(status=204, headers=headers)


def _bare(name: str) -> str:
    return name.strip("[]").rstrip(".").lower()


@lru_cache(maxsize=64)
def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
