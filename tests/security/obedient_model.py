"""A model that does what any text tells it: the worst case of an injected instruction.

`DO7: {"tool": "terminal", "with": {...}}` anywhere in the newest messages, in the system prompt, in a tool's result
or in a quotation makes it call that tool. It answers with everything that its tools said.
"""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

from tests.support.model_server import Reply
from tests.support.scripted_model import ScriptedModel, answered, calling

_ORDER = re.compile(r"DO(\d+): (?=\{)")
_ANSWER_CHARS = 3_000  # one message of a chat
_numbers = itertools.count(1)


def order(tool: str, **arguments: Any) -> str:
    """An instruction, obeyed once."""
    return f"DO{next(_numbers)}: " + json.dumps({"tool": tool, "with": arguments})


class ObedientModel(ScriptedModel):
    def __init__(self) -> None:
        super().__init__(idle_timeout_s=60)
        self.obeyed: dict[int, str] = {}  # the tool of each order
        self.on_request = self._obey

    def calls(self, text: str) -> set[int]:
        return {int(number) for number in _ORDER.findall(text)}

    def _obey(self, body: dict[str, Any]) -> Reply:
        newest = _newest(body["messages"])
        found = [each for message in newest for each in self._orders(_text(message))]
        if found:
            return calling(10, *found)
        results = [_text(message) for message in newest if message["role"] == "tool"]
        return answered(("results: " + " | ".join(results))[:_ANSWER_CHARS] if results else "fine")

    def _orders(self, text: str) -> list[tuple[str, dict[str, Any]]]:
        found = []
        for match in _ORDER.finditer(text):
            try:
                said, _ = json.JSONDecoder().raw_decode(text, match.end())
            except ValueError:  # cut short, or a fence changed it
                continue
            if int(match[1]) not in self.obeyed:
                self.obeyed[int(match[1])] = said["tool"]
                found.append((said["tool"], said["with"]))
        return found


def _newest(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Everything since the model's last words, and the system prompt."""
    last = max((at for at, message in enumerate(messages) if message["role"] == "assistant"), default=0)
    return [messages[0], *messages[last + 1 :]] if last else messages


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return str(content or "")
