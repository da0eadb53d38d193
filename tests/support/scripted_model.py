"""A model that works by rules, as a server in a thread: for tests that drive the real daemon from the outside.

The last thing a person said decides, whoever it was: `run COMMAND` asks for the terminal tool, `ask QUESTION` for
clarify, `call NAME {JSON}` for any tool; after tool results it answers with what they were. `say TEXT` answers with
the text. A request for a summary gets one. Everything that came in is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tests.support.model_server import DONE, ModelServer, Reply, delta, stream, usage
from tests.support.threaded_server import ThreadedServer

_NAME = re.compile(r"\A\[[^\[\]\n]+\] ")  # of whoever speaks, where several people do


class ScriptedModel(ThreadedServer):
    def __init__(
        self, *, tokens: Callable[[dict[str, Any]], int] = lambda body: 10, port: int = 0, idle_timeout_s: float = 5
    ) -> None:
        """`idle_timeout_s` is how long a daemon waits for it; then it asks again."""
        super().__init__("scripted model")
        self._idle_timeout_s = idle_timeout_s
        self.tokens = tokens  # how long a prompt is said to be
        self.on_request: Callable[[dict[str, Any]], Reply | None] = lambda body: None  # goes before the rules
        self.server = ModelServer(port=port)

    @property
    def config(self) -> str:
        return (
            f'model: {{provider: openai, base_url: "{self.server.base_url}", name: scripted, api_key_env: "", '
            f"idle_timeout_s: {self._idle_timeout_s:g}}}\n"
        )

    @property
    def requests(self) -> list[dict[str, Any]]:
        return self.server.requests

    def in_loop(self, work: Callable[[], object]) -> None:
        """Run something in the loop of the server, such as opening the gate of a reply that is held."""
        self._in_loop(work)

    async def _serve(self) -> None:
        self.server.handler = lambda body, number: self.on_request(body) or self._by_rule(body)
        async with self.server:
            await self._until_over()

    def _by_rule(self, body: dict[str, Any]) -> Reply:
        tokens = self.tokens(body)
        messages = body["messages"]
        if "You summarise a long" in str(messages[0]["content"]):
            return answered("Summary: " + " / ".join(_asked(messages[-1]["content"])), tokens)
        results = []
        for message in reversed(messages):
            if message["role"] == "tool":
                results.append(str(message["content"]))
            elif message["role"] == "user" and not str(message["content"]).startswith("[Note"):
                break
        if results:
            return answered("results: " + " | ".join(reversed(results)), tokens)
        verb, _, rest = _NAME.sub("", str(message["content"])).partition(" ")
        match verb:
            case "run":
                return calling(tokens, ("terminal", {"command": rest}))
            case "ask":
                return calling(tokens, ("clarify", {"question": rest, "choices": ["red", "blue"]}))
            case "call":
                name, _, arguments = rest.partition(" ")
                return calling(tokens, (name, json.loads(arguments)))
            case "say":
                return answered(rest, tokens)
        return answered(f"heard: {message['content']}", tokens)


def _asked(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if "topic" in line][:20]


def answered(text: str, tokens: int = 10) -> Reply:
    return stream(delta(content=text), delta("stop"), usage(tokens, 5), DONE)


def calling(tokens: int, *calls: tuple[str, dict[str, Any]]) -> Reply:
    made = [
        {"index": n, "id": f"call_{n}", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for n, (name, arguments) in enumerate(calls)
    ]
    return stream(delta(tool_calls=made), delta("tool_calls"), usage(tokens, 5), DONE)


def check_valid(messages: list[dict[str, Any]]) -> None:
    """Every call has its one result before the next answer, and no result is without its call."""
    open_calls: set[str] = set()
    for message in messages:
        match message["role"]:
            case "assistant" | "user":
                assert not open_calls, (open_calls, messages)
                open_calls = {call["id"] for call in message.get("tool_calls") or ()}
            case "tool":
                assert message["tool_call_id"] in open_calls, messages
                open_calls.discard(message["tool_call_id"])
    assert not open_calls, messages
