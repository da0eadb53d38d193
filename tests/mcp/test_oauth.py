"""OAuth 2.1 with PKCE: login, use and renewal of the tokens of an MCP server."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import importlib
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from hermes.mcp.link_error import LinkFailure, McpLinkError
from hermes.mcp.token_file import TokenFile
from tests.mcp.bench import server_spec

pytest.importorskip("mcp")
connection_module: Any = importlib.import_module("hermes.mcp.connection")  # slow: not on the event loop
oauth_module: Any = importlib.import_module("hermes.mcp.oauth")
auth_module: Any = importlib.import_module("mcp.client.auth")


class Protected:
    """MCP server that needs a token, and the authorization server that issues it."""

    def __init__(self) -> None:
        self.grants: list[str] = []
        self._challenge = ""
        app = web.Application()
        app.router.add_get("/.well-known/oauth-protected-resource/mcp", self.resource)
        app.router.add_get("/.well-known/oauth-authorization-server", self.metadata)
        app.router.add_post("/register", self.register)
        app.router.add_get("/authorize", self.authorize)
        app.router.add_post("/token", self.token)
        app.router.add_post("/mcp", self.mcp)
        self.server = TestServer(app)

    @property
    def base(self) -> str:
        return str(self.server.make_url("")).rstrip("/")

    async def resource(self, _request: web.Request) -> web.Response:
        return web.json_response({"resource": f"{self.base}/mcp", "authorization_servers": [self.base]})

    async def metadata(self, _request: web.Request) -> web.Response:
        routes = {f"{name}_endpoint": f"{self.base}/{path}" for name, path in ROUTES.items()}
        supported = {"response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"]}
        return web.json_response({"issuer": self.base, **routes, **supported})

    async def register(self, request: web.Request) -> web.Response:
        return web.json_response({**await request.json(), "client_id": "client-1"}, status=201)

    async def authorize(self, request: web.Request) -> web.Response:
        assert request.query["code_challenge_method"] == "S256"
        self._challenge = request.query["code_challenge"]
        return web.json_response({"code": "code-1", "state": request.query["state"]})

    async def token(self, request: web.Request) -> web.Response:
        given = await request.post()
        self.grants.append(str(given["grant_type"]))
        if given["grant_type"] == "authorization_code":
            digest = hashlib.sha256(str(given["code_verifier"]).encode()).digest()
            assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == self._challenge
        issued = {"access_token": f"access-{len(self.grants)}", "refresh_token": "refresh-1", "expires_in": 30}
        return web.json_response({**issued, "token_type": "Bearer"})

    async def mcp(self, request: web.Request) -> web.Response:
        if not request.headers.get("Authorization", "").startswith("Bearer access-"):
            where = f'Bearer resource_metadata="{self.base}/.well-known/oauth-protected-resource/mcp"'
            return web.Response(status=401, headers={"WWW-Authenticate": where})
        message = await request.json()
        if "id" not in message:
            return web.Response(status=202)
        answer: dict[str, Any] = {"error": {"code": -32601, "message": "no such method"}}
        if message["method"] == "initialize":
            version = message["params"]["protocolVersion"]
            info = {"name": "protected", "version": "1"}
            answer = {"result": {"protocolVersion": version, "capabilities": {}, "serverInfo": info}}
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], **answer})


ROUTES = {"authorization": "authorize", "token": "token", "registration": "register"}


@pytest.fixture
async def protected() -> AsyncIterator[Protected]:
    protected = Protected()
    await protected.server.start_server()
    yield protected
    await protected.server.close()


async def connect(protected: Protected, file: TokenFile, *, person: bool) -> None:
    """Open and close a connection; a person opens the address of the login at once."""
    answers: list[dict[str, str]] = []

    async def visit(url: str) -> None:
        async with aiohttp.ClientSession() as browser, browser.get(url) as response:
            answers.append(await response.json())

    async def answered() -> Any:
        return auth_module.AuthorizationCodeResult(code=answers[0]["code"], state=answers[0]["state"])

    spec = server_spec("protected", {"url": f"{protected.base}/mcp", "auth": "oauth"})
    auth = oauth_module.make_auth(
        spec, file, redirect=visit if person else None, callback=answered if person else None
    )
    hooks = connection_module.ConnectionHooks(
        sample=None, elicit=None, tools_changed=lambda: None, ended=lambda _: None
    )
    connection = connection_module.McpConnection(spec, command=None, headers={}, auth=auth, hooks=hooks)
    try:
        await connection.open()
    finally:
        await connection.close()


async def test_login_stores_private_tokens_that_are_renewed_later(protected: Protected, tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    with pytest.raises(McpLinkError) as refused:
        await connect(protected, file, person=False)
    assert refused.value.kind is LinkFailure.LOGIN
    await connect(protected, file, person=True)
    mode = (await asyncio.to_thread(file.path.stat)).st_mode
    assert stat.S_IMODE(mode) == 0o600
    assert protected.grants == ["authorization_code"]
    await connect(protected, file, person=False)  # the token expires soon: it is renewed without a person
    assert protected.grants == ["authorization_code", "refresh_token"]
    stored = await asyncio.to_thread(file.read, "protected", "tokens")
    assert stored["access_token"] == "access-2"
