"""Images of a transcript, as the current model can use them.

A transcript refers to images in the media store. A vision model gets the newest ones as data, up to a limit. Other
models get only the text, which contains each image's path.
"""

from __future__ import annotations

import asyncio
import base64
import json
import mimetypes
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from hermes.agent.chat_message import encode, text_of
from hermes.domain.media.reference import SCHEME, named_by
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.values import dataclass

MAX_PICTURES = 10  # in one request; earlier ones appear only as text
MAX_BYTES = 8 << 20  # in total
_MARK = SCHEME.encode()
_SEES = re.compile(
    r"gpt-4o|gpt-4\.|gpt-4-turbo|gpt-[5-9]|chatgpt|(?:^|/)o[1-9]\b|claude|gemini|gemma-?[3-9]|llama-?4|llava|pixtral"
    r"|mistral-(?:small|medium|large)-(?:3|2[5-9])|grok-[4-9]|vision|omni|[-_.\d]vl\b|minicpm-v|molmo|internvl|nova-",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMessages:
    messages: Sequence[EncodedMessage]
    pictures: int = 0  # number of images sent as data
    names: frozenset[str] = frozenset()  # of these images


def sees(model: str, vision: str) -> bool:
    """Return whether the model gets images; `vision` is auto, always or never."""
    return vision == "always" or (vision == "auto" and bool(_SEES.search(model)))


class ImagePolicy:
    def __init__(self, root: Path) -> None:
        self._root = root

    async def shown(
        self, messages: Sequence[EncodedMessage], *, sees: bool, without: AbstractSet[str] = frozenset()
    ) -> ShownMessages:
        """Return the messages with images as data, except those of the names in `without`."""
        # One search in the joined messages is several times faster than one for each message.
        if _MARK not in b"".join(messages):
            return ShownMessages(messages=messages)
        return await asyncio.to_thread(self._shown, messages, sees=sees, without=frozenset(without))

    def _shown(self, messages: Sequence[EncodedMessage], *, sees: bool, without: AbstractSet[str]) -> ShownMessages:
        """Insert images as data, newest first, within the limits."""
        result = list(messages)
        pictures, room = MAX_PICTURES if sees else 0, MAX_BYTES
        names: list[str] = []
        for place in reversed(range(len(result))):
            if not _has_picture(result[place]):
                continue
            message, used, size = self._filled(result[place], pictures, room, without)
            pictures, room = pictures - len(used), room - size
            result[place] = message
            names += used
        return ShownMessages(messages=result, pictures=len(names), names=frozenset(names))

    def _filled(
        self, message: EncodedMessage, most: int, room: int, without: AbstractSet[str]
    ) -> tuple[EncodedMessage, list[str], int]:
        fields = json.loads(message)
        content = fields.get("content")
        if not isinstance(content, list) or not any(map(named_by, content)):
            return message, [], 0
        parts: list[Any] = []
        used: list[str] = []
        size = 0
        for part in content:
            name = named_by(part)
            if not name:
                parts.append(part)
            elif len(used) < most and name not in without and (data := self._picture(name, room - size)):
                parts.append({"type": "image_url", "image_url": {"url": _address(name, data)}})
                used.append(name)
                size += len(data)
        if not used:  # not every endpoint accepts content parts
            return encode({**fields, "content": text_of(parts)}), [], 0
        return encode({**fields, "content": parts}), used, size

    def _picture(self, name: str, room: int) -> bytes:
        """Return the image's data; empty if it is missing or too large."""
        path = self._root / name
        try:
            return path.read_bytes() if path.stat().st_size <= room else b""
        except OSError:
            return b""


def _has_picture(message: EncodedMessage) -> bool:
    return message.find(_MARK) >= 0


def _address(name: str, data: bytes) -> str:
    kind = mimetypes.guess_type(name)[0] or "image/jpeg"
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
