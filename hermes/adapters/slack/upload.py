"""Files on their way to Slack: first the content, which nobody sees yet, and then the message that shows it."""

from __future__ import annotations

import io
from pathlib import Path

import aiohttp

from hermes.adapters.slack.workspace import Wire, Workspace
from hermes.errors import DeliveryError, UnsendableFileError
from hermes.regular_file import read_regular_file
from hermes.values import dataclass

MOST_BYTES = 50 << 20
_SEND_WITHIN_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    name: str
    data: bytes


def read_file(path: str) -> File:
    """In a thread. Raises UnsendableFileError."""
    try:
        data = read_regular_file(Path(path), most_bytes=MOST_BYTES)
    except FileNotFoundError:
        raise UnsendableFileError("it is not there any more") from None
    except OSError as error:
        raise UnsendableFileError(f"it cannot be read: {error.strerror}") from error
    if not data:
        raise UnsendableFileError("it is empty")
    if len(data) > MOST_BYTES:
        raise UnsendableFileError("it has more than 50 MB")
    return File(name=Path(path).name, data=data)


async def bring(wire: Wire, workspace: Workspace, file: File) -> str:
    """Slack has the content after this. Returns the file's id."""
    room = await workspace.client.files_getUploadURLExternal(filename=file.name, length=len(file.data))
    timeout = aiohttp.ClientTimeout(total=_SEND_WITHIN_S)
    content = io.BytesIO(file.data)
    async with wire.session.post(
        str(room["upload_url"]), data=content, proxy=workspace.client.proxy, timeout=timeout
    ) as response:
        if response.status != 200:
            raise DeliveryError(f"Slack does not take the file's content (HTTP {response.status})")
    return str(room["file_id"])


async def share(workspace: Workspace, file_id: str, name: str, *, channel: str, thread: str, text: str) -> None:
    """The message. It is there a moment later: Slack does not say under which timestamp."""
    await workspace.client.files_completeUploadExternal(
        files=[{"id": file_id, "title": name}],
        channel_id=channel,
        thread_ts=thread or None,
        initial_comment=text or None,
    )
