"""A model for programs that use the API through other people's clients, as a server in a thread.

The last `[[…]]` of the last user message decides, so that a client may add text of its own around it:

    [[say TEXT]]                      the text
    [[slow TEXT]]                     half of the text, then the rest after `release`; asked again, all of it
    [[call NAME JSON]]                one tool call, then the results
    [[call NAME JSON ;; NAME JSON]]   one tool call after the other, then all results
    [[person]]                        structured output: `response_format`, or a tool with the fields of a person
    [[look]]                          the number of pictures in the request, and of their bytes

A request without a rule gets "heard: TEXT".
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Iterator
from typing import Any

from tests.support.model_server import DONE, Hold, Part, Reply, delta, stream, usage
from tests.support.scripted_model import ScriptedModel

PERSON = {"name": "Ann", "age": 41}
_RULE = re.compile(r"\[\[(\w+) ?(.*?)\]\]", re.DOTALL)
_CALLS_APART = " ;; "


class ClientModel(ScriptedModel):
    def __init__(self) -> None:
        super().__init__(idle_timeout_s=300)  # longer than any driver waits
        self._held: dict[str, asyncio.Event] = {}  # by the text of a slow answer
        self._calls = 0

    @property
    def config(self) -> str:
        return super().config.replace("name: scripted", "name: scripted, vision: always")

    def release(self) -> None:
        """Let every slow answer continue."""
        for gate in self._held.values():
            self._in_loop(gate.set)

    def user_texts(self, request: int = -1) -> list[str]:
        """The rules in the user messages of a request, in order."""
        found = [last_rule(message) for message in self.requests[request]["messages"] if message["role"] == "user"]
        return [f"{verb} {rest}".strip() for verb, rest in found if verb]

    def _by_rule(self, body: dict[str, Any]) -> Reply:
        messages = body["messages"]
        asked = max((at for at, each in enumerate(messages) if _is_question(each)), default=0)
        results = [text_of(each) for each in messages[asked:] if each["role"] == "tool"]
        verb, rest = last_rule(messages[asked])
        match verb:
            case "say":
                return _answer(rest)
            case "slow":
                return self._slow(rest)
            case "call":
                return self._call_next(rest.split(_CALLS_APART), results)
            case "person":
                return self._person(body, results)
            case "look":
                sizes = [len(picture) for message in messages for picture in pictures(message)]
                return _answer(f"{len(sizes)} pictures, {sum(sizes)} bytes")
        return _answer(f"heard: {text_of(messages[asked])[:200]}")

    def _slow(self, text: str) -> Reply:
        if text in self._held:
            return _answer(text)
        self._held[text] = asyncio.Event()
        half = len(text) // 2
        parts: list[Part] = [delta(content=text[:half]), Hold(gate=self._held[text])]
        return stream(*parts, delta(content=text[half:]), *_END)

    def _call_next(self, calls: list[str], results: list[str]) -> Reply:
        if len(results) >= len(calls):
            return _answer("results: " + " | ".join(results))
        name, _, arguments = calls[len(results)].partition(" ")
        return self._call(name, arguments)

    def _call(self, name: str, arguments: str) -> Reply:
        self._calls += 1
        call = {"index": 0, "id": f"call_{self._calls}", "type": "function"}
        made = {**call, "function": {"name": name, "arguments": arguments}}
        return stream(delta(tool_calls=[made]), delta("tool_calls"), usage(10, 5), DONE)

    def _person(self, body: dict[str, Any], results: list[str]) -> Reply:
        tools = [each["function"] for each in body.get("tools") or ()]
        fits = [tool["name"] for tool in tools if set(PERSON) <= set(tool["parameters"].get("properties") or ())]
        forced = body.get("tool_choice") not in (None, "auto", "none")
        if results or not fits or ("response_format" in body and not forced):
            return _answer(json.dumps(PERSON))
        return self._call(fits[0], json.dumps(PERSON))


_END: tuple[Part, ...] = (delta("stop"), usage(10, 5), DONE)


def _answer(text: str) -> Reply:
    return stream(delta(content=text), *_END)


def _is_question(message: dict[str, Any]) -> bool:
    return message["role"] == "user" and not text_of(message).startswith("[Note")


def last_rule(message: dict[str, Any]) -> tuple[str, str]:
    found = _RULE.findall(text_of(message))
    return found[-1] if found else ("", "")


def text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def pictures(message: dict[str, Any]) -> Iterator[bytes]:
    """The pictures of one message that came as data URIs."""
    content = message["content"]
    for part in content if isinstance(content, list) else ():
        if part["type"] == "image_url":
            yield base64.b64decode(part["image_url"]["url"].partition("base64,")[2])
