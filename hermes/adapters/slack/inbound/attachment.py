"""Files in a Slack message. Pure.

For a file in a channel shared with another organisation, the message has only the id; `files.info` returns the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.adapters.chat.utf16 import sound
from hermes.ports.chat import Attachment

_KINDS = ("image", "audio", "video")
_CLIPS = {"slack_audio": "voice", "slack_video": "video"}  # recorded in Slack


def attachments_of(message: Mapping[str, Any], team: str) -> tuple[Attachment, ...]:
    files = message.get("files") or ()
    return tuple(attachment_of(each, team) for each in files if each.get("id") and each.get("mode") != "tombstone")


def attachment_of(file: Mapping[str, Any], team: str) -> Attachment:
    """Build an attachment. Its id includes the workspace, whose token is needed for the download."""
    media_type = str(file.get("mimetype") or "").lower()
    family = media_type.partition("/")[0]
    return Attachment(
        kind=_CLIPS.get(str(file.get("subtype") or ""), family if family in _KINDS else "file"),
        file_id=f"{team}.{file['id']}",
        name=sound(str(file.get("name") or file.get("title") or "")),
        media_type=media_type,
        size_bytes=int(file.get("size") or 0),
        seconds=round(int(file.get("duration_ms") or 0) / 1000),
    )


def is_bare(attachment: Attachment) -> bool:
    """Return True if only the id is known."""
    return not attachment.name and not attachment.media_type
