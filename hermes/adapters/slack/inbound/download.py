"""Files that people share on Slack, on their way to us.

The bot's token goes along, and only to Slack: to the address of its API, to what lies below that, and to slack.com.
Who may not see a file is sent to a login page, as if it were the file: that is no file.
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
_LOCKED = "Slack does not give us the file: the app needs the scope files:read, and has to be installed again with it"
_GONE = frozenset({"file_deleted", "file_not_found"})


async def download(wire: SlackClient, attachment: Attachment) -> AsyncGenerator[bytes, None]:
    """What is in a file, piece by piece. Raises PlatformError."""
    team, _, name = attachment.file_id.partition(".")
    workspace = (await wire.workspaces()).get(team)
    if workspace is None:
        raise PlatformError(f"no token opens the Slack workspace {team}")
    about = await _about(workspace, name)
    address = _address(about, wire.base_url)
    asking = wire.session.get(
        address,
        headers={"Authorization": f"Bearer {workspace.client.token}"},
        proxy=workspace.client.proxy,
        allow_redirects=False,
        timeout=wire.patience,
    )
    try:
        async with asking as response:
            _check(response, about)
            async for piece in response.content.iter_chunked(_PIECE_BYTES):
                yield piece
    except FAILURES as error:
        raise PlatformError(explain(error)) from error


async def described(workspace: Workspace, attachment: Attachment) -> Attachment:
    """The same, with all that Slack knows of it; what cannot be asked now is said when it is fetched."""
    team, _, name = attachment.file_id.partition(".")
    try:
        return attachment_of({**await _about(workspace, name), "id": name}, team)
    except (PlatformError, TypeError, ValueError) as error:
        logger.info("slack: nothing is known of the file {}: {}", name, error)
        return attachment


async def _about(workspace: Workspace, name: str) -> Mapping[str, Any]:
    for left in reversed(range(_TRIES)):
        try:
            about = (await workspace.client.files_info(file=name)).get("file")
        except FAILURES as error:
            wait_s = wait_of(error)
            if wait_s is None or not left:
                raise PlatformError(_why_not(error)) from error
            await asyncio.sleep(wait_s)  # whoever wants the file has set a time limit
        else:
            return about if isinstance(about, dict) else {}
    raise AssertionError(name)  # the last try returns or raises


def _why_not(error: Any) -> str:
    code = code_of(error)
    if code == "missing_scope":
        return _LOCKED
    return "it is not there any more" if code in _GONE else explain(error)


def _address(about: Mapping[str, Any], base_url: str) -> URL:
    found = about.get("url_private_download") or about.get("url_private")
    if not isinstance(found, str) or not found:
        raise PlatformError("Slack does not say where the file can be fetched")
    try:
        address = URL(found)
        host = address.host
    except ValueError as error:
        raise PlatformError("Slack says that it lies where nothing can be fetched") from error
    if address.user or address.password:
        raise PlatformError("Slack says that it lies behind somebody's password")
    if not _is_slack(address, URL(base_url)):
        raise PlatformError(f"it does not lie with Slack, but with {host or 'nobody'}")
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
        raise PlatformError(f"Slack does not give us the file (HTTP {response.status})")
    if response.content_type == "text/html" and about.get("mimetype") != "text/html":
        raise PlatformError(_LOCKED)
