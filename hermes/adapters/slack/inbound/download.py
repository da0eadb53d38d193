"""Downloads of files that people share on Slack.

The bot's token is sent only to Slack: the API host, its subdomains, and slack.com. Without access Slack redirects to
a login page, which must not be taken for the file.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import aiohttp
from loguru import logger
from yarl import URL

from hermes.adapters.slack.failure import FAILURES, code_of, explain, wait_of
from hermes.adapters.slack.inbound.attachment import attachment_of
from hermes.adapters.slack.workspace import SlackClient, Workspace
from hermes.domain.errors import PlatformError
from hermes.ports.chat import Attachment

_PIECE_BYTES = 1 << 18
_TRIES = 3
_SLACK = "slack.com"
_LOCKED = "Slack denied access to the file: add the scope files:read to the app and install it again"
_GONE = frozenset({"file_deleted", "file_not_found"})


async def download(client: SlackClient, attachment: Attachment) -> AsyncGenerator[bytes, None]:
    """Stream the contents of a file. Raises PlatformError."""
    team, _, name = attachment.file_id.partition(".")
    workspace = (await client.workspaces()).get(team)
    if workspace is None:
        raise PlatformError(f"no token for the Slack workspace {team}")
    about = await _about(workspace, name)
    address = _address(about, client.base_url)
    asking = client.session.get(
        address,
        headers={"Authorization": f"Bearer {workspace.client.token}"},
        proxy=workspace.client.proxy,
        allow_redirects=False,
        timeout=client.patience,
    )
    try:
        async with asking as response:
            _check(response, about)
            async for piece in response.content.iter_chunked(_PIECE_BYTES):
                yield piece
    except FAILURES as error:
        raise PlatformError(explain(error)) from error


async def described(workspace: Workspace, attachment: Attachment) -> Attachment:
    """Add what Slack knows about the file. A failure is reported again by the download."""
    team, _, name = attachment.file_id.partition(".")
    try:
        return attachment_of({**await _about(workspace, name), "id": name}, team)
    except (PlatformError, TypeError, ValueError) as error:
        logger.info("slack: could not get details of file {}: {}", name, error)
        return attachment


async def _about(workspace: Workspace, name: str) -> Mapping[str, Any]:
    for left in reversed(range(_TRIES)):
        try:
            about = (await workspace.client.files_info(file=name)).get("file")
        except FAILURES as error:
            wait_s = wait_of(error)
            if wait_s is None or not left:
                raise PlatformError(_why_not(error)) from error
            await asyncio.sleep(wait_s)  # the caller has a timeout
        else:
            return about if isinstance(about, dict) else {}
    raise AssertionError(name)  # the last try returns or raises


def _why_not(error: Any) -> str:
    code = code_of(error)
    if code == "missing_scope":
        return _LOCKED
    return "the file no longer exists" if code in _GONE else explain(error)


def _address(about: Mapping[str, Any], base_url: str) -> URL:
    found = about.get("url_private_download") or about.get("url_private")
    if not isinstance(found, str) or not found:
        raise PlatformError("Slack returned no download address")
    try:
        address = URL(found)
        host = address.host
    except ValueError as error:
        raise PlatformError("Slack returned an invalid download address") from error
    if address.user or address.password:
        raise PlatformError("Slack returned a download address with credentials")
    if not _is_slack(address, URL(base_url)):
        raise PlatformError(f"the file is not on Slack but on {host or 'an unknown host'}")
    return address


def _is_slack(address: URL, base: URL) -> bool:
    host = address.host or ""
    if address.scheme == "https" and address.port == 443 and _is_below(host, _SLACK):
        return True
    return (address.scheme, address.port) == (base.scheme, base.port) and _is_below(host, base.host or "")


def _is_below(host: str, top: str) -> bool:
    return bool(top) and (host == top or host.endswith(f".{top}"))


def _check(response: aiohttp.ClientResponse, about: Mapping[str, Any]) -> None:
    if response.status in (401, 403) or 300 <= response.status < 400:
        raise PlatformError(_LOCKED)
    if response.status != 200:
        raise PlatformError(f"Slack denied the download (HTTP {response.status})")
    if response.content_type == "text/html" and about.get("mimetype") != "text/html":
        raise PlatformError(_LOCKED)
