"""OAuth 2.1 with PKCE for MCP servers, by the SDK. Imports the SDK."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from hermes.domain.mcp.server_spec import McpServerSpec
from hermes.mcp.link_error import LinkFailure, McpLinkError
from hermes.mcp.token_file import TokenFile

_TOKENS, _CLIENT, _EXPIRY = "tokens", "client", "expires_at"
_EARLY_S = 60.0

Redirect = Callable[[str], Awaitable[None]]
Callback = Callable[[], Awaitable[AuthorizationCodeResult]]


class _Storage:
    def __init__(self, file: TokenFile, server: str, client: OAuthClientInformationFull | None) -> None:
        self._file = file
        self._server = server
        self._client = client  # configured one

    async def get_tokens(self) -> OAuthToken | None:
        stored = await asyncio.to_thread(self._file.read, self._server, _TOKENS)
        return None if stored is None else OAuthToken.model_validate(stored)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        value: dict[str, Any] = tokens.model_dump(mode="json", exclude_none=True)
        await asyncio.to_thread(self._file.write, self._server, _TOKENS, value)
        if tokens.expires_in is not None:
            at = time.time() + tokens.expires_in - _EARLY_S
            await asyncio.to_thread(self._file.write, self._server, _EXPIRY, at)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        if self._client is not None:
            return self._client
        stored = await asyncio.to_thread(self._file.read, self._server, _CLIENT)
        return None if stored is None else OAuthClientInformationFull.model_validate(stored)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        value = client_info.model_dump(mode="json", exclude_none=True)
        await asyncio.to_thread(self._file.write, self._server, _CLIENT, value)


class _Provider(OAuthClientProvider):  # type: ignore[misc]
    """Provider that knows after a restart when its token expires, and then refreshes it first."""

    def __init__(self, *given: Any, file: TokenFile, server: str, **named: Any) -> None:
        super().__init__(*given, **named)
        self._file = file
        self._server = server

    async def _initialize(self) -> None:
        await super()._initialize()
        self.context.token_expiry_time = await asyncio.to_thread(self._file.read, self._server, _EXPIRY)


def make_auth(
    spec: McpServerSpec,
    file: TokenFile,
    *,
    secret: str = "",
    redirect_uri: str = "",
    redirect: Redirect | None = None,
    callback: Callback | None = None,
) -> OAuthClientProvider:
    """Return the authentication of a server. Without `redirect`, a login that is needed fails."""

    async def refuse(_url: str) -> None:
        raise McpLinkError(LinkFailure.LOGIN, f"it needs a login: run `hermes mcp login {spec.name}`")

    uri = redirect_uri or f"http://127.0.0.1:{spec.oauth.redirect_port or 8765}/callback"
    metadata = OAuthClientMetadata(
        client_name="Hermes",
        redirect_uris=[AnyUrl(uri)],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        scope=spec.oauth.scope or None,
        token_endpoint_auth_method="client_secret_post" if secret else "none",
    )
    client = _configured_client(spec, uri, secret)
    return _Provider(
        spec.url,
        metadata,
        _Storage(file, spec.name, client),
        redirect or refuse,
        callback,
        file=file,
        server=spec.name,
    )


def _configured_client(spec: McpServerSpec, uri: str, secret: str) -> OAuthClientInformationFull | None:
    if not spec.oauth.client_id:
        return None
    return OAuthClientInformationFull(
        client_id=spec.oauth.client_id,
        client_secret=secret or None,
        redirect_uris=[AnyUrl(uri)],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="client_secret_post" if secret else "none",
    )
