"""File uploads to Slack: first the content, then the message that shows it."""

from __future__ import annotations

import io

import aiohttp

from hermes.adapters.chat.outgoing_file import OutgoingFile
from hermes.adapters.slack.workspace import SlackClient, Workspace
from hermes.domain.errors import DeliveryError

TOO_LARGE = "the file is larger than 50 MB"
_SEND_WITHIN_S = 120.0


async def bring(client: SlackClient, workspace: Workspace, file: OutgoingFile) -> str:
    """Upload the content. Returns the file id."""
    room = await workspace.client.files_getUploadURLExternal(filename=file.name, length=len(file.data))
    timeout = aiohttp.ClientTimeout(total=_SEND_WITHIN_S)
    content = io.BytesIO(file.data)
    async with client.session.post(
        str(room["upload_url"]), data=content, proxy=workspace.client.proxy, timeout=timeout
    ) as response:
        if response.status != 200:
            raise DeliveryError(f"Slack refused the file's content (HTTP {response.status})")
    return str(room["file_id"])


async def share(workspace: Workspace, file_id: str, name: str, *, channel: str, thread: str, text: str) -> None:
    """Post the message with the file. Slack does not return its timestamp."""
    await workspace.client.files_completeUploadExternal(
        files=[{"id": file_id, "title": name}],
        channel_id=channel,
        thread_ts=thread or None,
        initial_comment=text or None,
    )
