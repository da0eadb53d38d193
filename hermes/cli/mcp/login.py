"""Login to an MCP server with OAuth 2.1 and PKCE: a browser, and a callback on the loopback address."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from hermes.cli.output import print_text
from hermes.domain.errors import HermesError, NotRunningError
from hermes.domain.mcp.server_spec import McpAuth, McpServerSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

_ANSWER = (
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
    "You can close this page and return to the terminal.\n"
)
_MAX_REQUEST = 65_536


def log_in(name: str, environ: Mapping[str, str], *, within_s: float) -> None:
    """Log in and store the tokens. A running daemon forgets that the server needed a login."""
    from hermes.cli.client import connect
    from hermes.config.home import Home
    from hermes.config.loader import load_config

    home = Home.from_environ(environ)
    specs = {each.name: each for each in load_config(home, environ).mcp_servers}
    spec = specs.get(name)
    if spec is None:
        raise HermesError(f"there is no MCP server {name} in {home.config_file}")
    if not spec.url or spec.auth is not McpAuth.OAUTH:
        raise HermesError(f"{name} does not use OAuth; set `auth: oauth` for it")
    try:
        asyncio.run(_log_in(spec, home.data_dir, environ, within_s))
    except TimeoutError:
        raise HermesError(f"the login was not completed within {within_s:g} s; nothing was changed") from None
    try:
        connect(environ).post(f"/mcp/servers/{name}/stop")
    except NotRunningError:
        return


async def _log_in(spec: McpServerSpec, data_dir: Any, environ: Mapping[str, str], within_s: float) -> None:
    from hermes.mcp.server import sdk_module
    from hermes.mcp.token_file import TokenFile

    callback = _Callback()
    server = await asyncio.start_server(callback.take, "127.0.0.1", spec.oauth.redirect_port, limit=_MAX_REQUEST)
    async with server, asyncio.timeout(within_s):
        port = server.sockets[0].getsockname()[1]
        oauth = sdk_module("hermes.mcp.oauth")
        secret = environ.get(spec.oauth.client_secret_env, "") if spec.oauth.client_secret_env else ""
        auth = oauth.make_auth(
            spec,
            TokenFile(data_dir),
            secret=secret,
            redirect_uri=f"http://127.0.0.1:{port}/callback",
            redirect=_show,
            callback=callback.wait,
        )
        await _touch(spec, auth, environ)


async def _touch(spec: McpServerSpec, auth: Any, environ: Mapping[str, str]) -> None:
    """Connect once: the first refused request begins the login."""
    from hermes.mcp.environment import server_headers
    from hermes.mcp.server import sdk_module

    module = sdk_module("hermes.mcp.connection")
    hooks = module.ConnectionHooks(sample=None, elicit=None, tools_changed=lambda: None, ended=lambda _: None)
    connection = module.McpConnection(
        spec, command=None, headers=server_headers(spec, environ), auth=auth, hooks=hooks
    )
    try:
        await connection.open()
    finally:
        await connection.close()


async def _show(url: str) -> None:
    print_text("Open this address in a browser on this machine, and log in:", file=sys.stderr)
    print(url, file=sys.stderr, flush=True)


class _Callback:
    """Listener for the one request with the authorization code."""

    def __init__(self) -> None:
        self._found: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = (await reader.readline()).decode("latin-1").split()
            query = parse_qs(urlsplit(line[1]).query) if len(line) > 1 else {}
            found = {name: values[0] for name, values in query.items()}
            if ("code" in found or "error" in found) and not self._found.done():
                self._found.set_result(found)
            writer.write(_ANSWER.encode())
            await writer.drain()
        except (OSError, ValueError):
            pass
        finally:
            writer.close()

    async def wait(self) -> Any:
        from mcp.client.auth import AuthorizationCodeResult

        found = await self._found
        if "error" in found:
            raise HermesError(f"the login was refused: {found['error'][:200]}")
        return AuthorizationCodeResult(code=found["code"], state=found.get("state"), iss=found.get("iss"))
