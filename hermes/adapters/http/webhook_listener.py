"""HTTP server for chat webhooks, with limits on connections, heads, bodies and time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from aiohttp import web

from hermes.adapters.http.connection import connection_of, watch_heads
from hermes.adapters.http.listener import Lifetime, Listener, until
from hermes.adapters.http.peer_limit import PeerLimit

MAX_BODY_BYTES = 1 << 20
MAX_CONNECTIONS = 256  # a proxy in front has one address
HEADER_TIMEOUT_S = 10.0
BODY_TIMEOUT_S = 10.0


def webhook_listener(
    path: str, answer: Callable[[web.Request], Coroutine[Any, Any, web.Response]], *, gives_up: bool = False
) -> Listener:
    """Return a listener, not yet open, for POST requests to one path.

    `gives_up` cancels the answer when the client leaves or the listener stops; the platform sends it again.
    """
    lifetime = Lifetime()

    async def take(request: web.Request) -> web.Response:
        if not gives_up:
            return await answer(request)
        response = await until(answer(request), connection_of(request).lost, lifetime.leaving)
        return web.Response(status=503) if response is None else response

    app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[watch_heads])
    app.router.add_post(path, take)
    return Listener(
        app,
        lifetime,
        door=PeerLimit(in_all=MAX_CONNECTIONS, per_peer=2 * MAX_CONNECTIONS),  # one pool: there are no keys
        header_timeout_s=HEADER_TIMEOUT_S,
        stall_timeout_s=BODY_TIMEOUT_S,
    )


async def read_body(request: web.Request) -> bytes:
    """Read a body. Raises web.HTTPException if it is too large or too slow."""
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            return await request.read()
    except TimeoutError:
        raise web.HTTPRequestTimeout from None
