"""References to files of the media store, in messages to a model and in results of the tool that sends files.

A transcript holds the name of a picture, never its bytes. The picture is loaded for each model call, so that a
transcript stays small and a conversation continues if the file is gone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from hermes.domain.media.scope import SCOPE_PATTERN
from hermes.domain.turn.message import EncodedMessage

SCHEME = "hermes-media:"
FILE_TOOLS = frozenset({"send_file", "image_generate"})  # their results name a file to send
COPY = "copy"  # in such a result: path of the copy to send

_NAME = re.compile(rf"({SCOPE_PATTERN}/)?[0-9a-f]{{64}}(\.[a-z0-9]{{1,8}})?")  # older files have no scope


def picture(name: str) -> dict[str, Any]:
    """Return the part of a message's content for a picture."""
    return {"type": "image_url", "image_url": {"url": SCHEME + name}}


def named_by(part: object) -> str:
    """Return the name of the file that a part refers to; empty if it is not in the media store."""
    image = part.get("image_url") if isinstance(part, dict) else None
    address = image.get("url") if isinstance(image, dict) else None
    if not isinstance(address, str) or not address.startswith(SCHEME):
        return ""
    name = address.removeprefix(SCHEME)
    return name if _NAME.fullmatch(name) else ""


def content_of(text: str, pictures: Sequence[str]) -> Any:
    """Return the content of a message: its text, or with pictures a list of parts."""
    return [{"type": "text", "text": text}, *map(picture, pictures)] if pictures else text


def user_message(text: str, pictures: Sequence[str] = ()) -> EncodedMessage:
    message = {"role": "user", "content": content_of(text, pictures)}
    return EncodedMessage(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))
