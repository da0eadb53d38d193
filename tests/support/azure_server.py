"""Azure OpenAI as its documentation describes it: the v1 API, and the dated API with deployments in the path.

It checks path, key and version of a request as the service does, and then plays the reply of `handler`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Self

from aiohttp import web

from tests.support.model_server import Reply, delta, event, stream, usage
from tests.support.threaded_server import ThreadedServer

KEY = "azure-key"
DEPLOYMENT = "my-deployment"
VERSION = "2024-10-21"
NO_DEPLOYMENT = "The API deployment for this resource does not exist. If you created it recently, wait a moment."


def answered(text: str) -> Reply:
    """A completion as Azure streams it: the first chunk has the result of the content filter and no choice."""
    first = {"choices": [], "id": "", "model": "", "object": "", "prompt_filter_results": [{"prompt_index": 0}]}
    return stream(event(first), delta(content=text), delta("stop"), usage(7, 2), b"data: [DONE]\n\n")


class AzureServer(ThreadedServer):
    def __init__(self) -> None:
        super().__init__("azure server")
        self.address = ""
        self.requests: list[tuple[str, dict[str, Any]]] = []  # path with query, body
        self.handler: Callable[[dict[str, Any]], Reply] = lambda body: answered("ok")

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/openai/{rest:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.address = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _serve(self) -> None:
        async with self:
            await self._until_over()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("api-key") != KEY or "Authorization" in request.headers:
            return _error(401, "401", "Access denied due to invalid subscription key or wrong API endpoint.")
        rest = request.match_info["rest"]
        is_dated = not rest.startswith("v1/")
        if is_dated and request.query.get("api-version") != VERSION:
            return _error(404, "404", "Resource not found")
        if rest in ("models", "v1/models") and request.method == "GET":
            return web.json_response({"object": "list", "data": [{"id": "gpt-4o", "object": "model"}]})
        body = await request.json()
        self.requests.append((request.path_qs, body))
        named = rest.split("/")[1] if is_dated and rest.startswith("deployments/") else body.get("model")
        if named != DEPLOYMENT:
            return _error(404, "DeploymentNotFound", NO_DEPLOYMENT)
        paths = {f"deployments/{DEPLOYMENT}/chat/completions", "responses", "v1/chat/completions", "v1/responses"}
        if rest not in paths:
            return _error(404, "404", "Resource not found")
        return await _played(request, self.handler(body))


def _error(status: int, code: str, message: str) -> web.Response:
    return web.json_response({"error": {"code": code, "message": message}}, status=status)


async def _played(request: web.Request, reply: Reply) -> web.StreamResponse:
    response = web.StreamResponse(status=reply.status, headers=reply.headers)
    await response.prepare(request)
    for part in reply.parts:
        assert isinstance(part, bytes)
        await response.write(part)
    return response


def refused(status: int, code: str, **headers: str) -> Reply:
    """An error as Azure shapes it. Headers are given as `retry_after_ms="1"`."""
    body = json.dumps({"error": {"code": code, "message": "no", "innererror": {}}}).encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, headers={"Content-Type": "application/json", **names}, parts=(body,))
