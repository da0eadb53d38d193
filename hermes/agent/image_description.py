"""Descriptions of pictures for models that cannot see, made by the model in `auxiliary.vision`.

A picture is described once while the daemon runs, so that the transcript stays the same for the model. If that fails,
the model gets the reason instead.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from hermes.agent.chat_message import encode, text_of
from hermes.agent.image_policy import MAX_PICTURES
from hermes.domain.media.reference import SCHEME, named_by, picture
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.turn_failure import Failure

REMEMBERED = 1000  # descriptions
_MARK = SCHEME.encode()
_QUESTION = (
    "Describe this picture for an assistant that cannot see it: what it shows, all text in it, numbers, layout. "
    "Answer with the description only."
)

Describe = Callable[[EncodedMessage], Awaitable[str | Failure]]  # asks a vision model


class ImageDescriptions:
    def __init__(self) -> None:
        self._known: dict[str, str] = {}  # by the name of the picture, which is its hash

    async def told(self, messages: Sequence[EncodedMessage], describe: Describe) -> list[EncodedMessage]:
        """Return the messages with descriptions of the newest pictures. Older pictures stay as they are."""
        result = list(messages)
        left = MAX_PICTURES
        for place in reversed(range(len(result))):
            if left > 0 and result[place].find(_MARK) >= 0:
                result[place], used = await self._told(result[place], describe, left)
                left -= used
        return result

    async def _told(self, message: EncodedMessage, describe: Describe, most: int) -> tuple[EncodedMessage, int]:
        fields = json.loads(message)
        content = fields.get("content")
        names = [name for part in content if (name := named_by(part))][:most] if isinstance(content, list) else []
        if not names:
            return message, 0
        texts = {name: await self._description(name, describe) for name in names}
        parts: list[Any] = [
            {"type": "text", "text": texts[name]} if (name := named_by(part)) in texts else part for part in content
        ]
        whole = text_of(parts) if not any(map(named_by, parts)) else parts
        return encode({**fields, "content": whole}), len(names)

    async def _description(self, name: str, describe: Describe) -> str:
        if name in self._known:
            return self._known[name]
        content = [{"type": "text", "text": _QUESTION}, picture(name)]
        answer = await describe(encode({"role": "user", "content": content}))
        if isinstance(answer, Failure):
            return f"[the picture could not be described: {answer.kind}]"
        self._known[name] = f"[description of the picture: {answer.strip()}]"
        if len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return self._known[name]
