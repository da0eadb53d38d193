"""Scenarios of the matrix: what Hermes has to do with each endpoint. Each one uses the real daemon over its API."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.providers.backends import CONTEXT, Backend
from tests.providers.moves import Break, Call, Fail, Limit, Move, Say
from tests.support.daemon_process import Answer, DaemonProcess
from tests.support.pictures import PNG

TEXT = "one two three four five six"
NOTE = "what the tool reads"
READ = ("read_file", {"path": "note.txt"})
MANY_WORDS = "word " * CONTEXT
_WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tell the weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
_WAIT_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    daemon: DaemonProcess
    backend: Backend
    protocol: str

    def ask(self, content: Any = "Say hello.", **fields: Any) -> Answer:
        limit = 60 if self.backend.is_scripted else 16
        body = {"model": "hermes", "messages": [{"role": "user", "content": content}], "max_tokens": limit, **fields}
        return self.daemon.request("POST", "/v1/chat/completions", body)

    def answered(self, *moves: Move, content: Any = "Say hello.") -> Answer:
        """Ask for the last move's text, and check it."""
        self.backend.play(*moves)
        answer = self.ask(content)
        assert answer.status == 200, answer.body.decode()[:500]
        assert answer.text == TEXT if self.backend.is_scripted else answer.text.strip()
        return answer

    def refused(self, move: Fail, code: str) -> None:
        """Check that a failure is reported with this code, and that the call is not repeated."""
        self.backend.play(move, Say(text=TEXT))
        answer = self.ask()
        assert answer.status >= 400, f"it was repeated and answered: {answer.body.decode()[:300]}"
        found = answer.json()["error"]["code"]
        assert found == code, f"{found} instead of {code}: {answer.body.decode()[:300]}"


def _answer(stage: Stage) -> None:
    """One question, one answer."""
    stage.answered(Say(text=TEXT))


def _stream(stage: Stage) -> None:
    """A streamed answer is complete. Where the endpoint pauses between words, it arrives in several pieces."""
    stage.backend.play(Say(text=TEXT))
    body = stage.ask(stream=True).body.decode()
    events = [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: {")]
    pieces = [event["choices"][0]["delta"].get("content") for event in events if event.get("choices")]
    said = [piece for piece in pieces if piece]
    assert len(said) > stage.backend.is_paced, body[:2000]
    assert not stage.backend.is_scripted or "".join(said) == TEXT


def _usage(stage: Stage) -> None:
    """Tokens of the prompt and of the answer are counted."""
    usage = stage.answered(Say(text=TEXT)).json()["usage"]
    assert usage["prompt_tokens"] > 0, usage
    assert usage["completion_tokens"] > 0, usage


def _tool(stage: Stage) -> None:
    """A tool is called, and its result goes back. Without a script: a call of the client's tool is handed on."""
    if not stage.backend.is_scripted:
        return _forced_tool(stage)
    stage.answered(Call(calls=(READ,)), Say(text=TEXT), content="Read the note.")
    for body in stage.backend.upstream()[-1:]:
        assert any(NOTE in str(message["content"]) for message in body["messages"] if message["role"] == "tool")
    return None


def _forced_tool(stage: Stage) -> None:
    if stage.protocol != "chat":
        raise Limit("only chat completions pass `tool_choice` on, without which the small model calls no tool")
    answer = stage.ask("What is the weather in Rome?", tools=[_WEATHER], tool_choice="required", max_tokens=100)
    assert answer.status == 200, answer.body.decode()[:500]
    [call] = answer.json()["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "get_weather"
    json.loads(call["function"]["arguments"])


def _parallel(stage: Stage) -> None:
    """Two calls of one answer run, and both results go back together."""
    answer = stage.answered(Call(calls=(READ, ("read_file", {"path": "other.txt"}))), Say(text=TEXT))
    stored = json.dumps(stage.daemon.request("GET", f"/api/sessions/{answer.session}/messages").json())
    assert stored.count(NOTE) == 2, stored[-1000:]
    for body in stage.backend.upstream()[-1:]:
        results = [message for message in body["messages"] if message["role"] == "tool"]
        assert len(results) == 2, body["messages"][-4:]


def _picture(stage: Stage) -> None:
    """A message with a picture is answered; a converter passes the picture on."""
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    content = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url}}]
    stage.answered(Say(text=TEXT), content=content)
    for body in stage.backend.upstream()[-1:]:
        assert "image_url" in json.dumps(body["messages"][-1])


def _reasoning(stage: Stage) -> None:
    """Reasoning is kept apart from the answer, and the next turn works."""
    thought = "They greet me."
    answer = stage.answered(Say(text=TEXT, thought=thought))
    found = answer.json()["choices"][0]["message"].get("reasoning_content")
    assert found == thought, f"reasoning is {found!r}"
    stage.backend.play(Say(text="and again"))
    body = {"model": "hermes", "messages": [{"role": "user", "content": "And again?"}]}
    again = stage.daemon.request("POST", "/v1/chat/completions", body, X_Hermes_Session_Id=answer.session)
    assert again.text == "and again"


def _rate_limit(stage: Stage) -> None:
    """429: the wait that the endpoint requests is kept, then the call is repeated."""
    began = time.monotonic()
    stage.answered(Fail(status=429, retry_after_s=_WAIT_S), Say(text=TEXT))
    waited_s = time.monotonic() - began
    if not stage.backend.keeps_retry_after:
        raise Limit("the call is repeated, but it does not pass Retry-After on")
    assert waited_s >= _WAIT_S, f"repeated after {waited_s:.1f} s"


def _wrong_key(stage: Stage) -> None:
    """401: reported as a problem of the key, not repeated."""
    if stage.backend.is_scripted:
        return stage.refused(Fail(status=401, code="invalid_api_key"), "upstream_auth")
    config = f"model: {{{stage.backend.model(stage.protocol)}, api_key_env: A_KEY}}\n"
    with DaemonProcess(config=config, environ={"A_KEY": "wrong"}) as daemon:
        assert daemon.ask("hello").json()["error"]["code"] == "upstream_auth"
    return None


def _overflow(stage: Stage) -> None:
    """A conversation that is too long: reported as such, not repeated."""
    code = "context_length_exceeded"
    if stage.backend.is_scripted:
        message = "This model's maximum context length is 8192 tokens."
        return stage.refused(Fail(status=400, code=code, message=message), code)
    answer = stage.ask(MANY_WORDS)
    assert (answer.status, answer.json()["error"]["code"]) == (400, code), answer.body.decode()[:500]
    return None


def _refused(status: int, code: str, sent: str = "") -> Callable[[Stage], None]:
    def scenario(stage: Stage) -> None:
        stage.refused(Fail(status=status, code=sent), code)

    scenario.__doc__ = f"{status}: reported as `{code}`, not repeated."
    return scenario


def _repeated(move: Move, what: str) -> Callable[[Stage], None]:
    def scenario(stage: Stage) -> None:
        stage.answered(move, Say(text=TEXT))

    scenario.__doc__ = f"{what}: the call is repeated."
    return scenario


SCENARIOS: Mapping[str, Callable[[Stage], None]] = {
    "answer": _answer,
    "stream": _stream,
    "usage": _usage,
    "tool": _tool,
    "parallel": _parallel,
    "picture": _picture,
    "reasoning": _reasoning,
    "401": _wrong_key,
    "402": _refused(402, "upstream_billing"),
    "403": _refused(403, "upstream_auth"),
    "404": _refused(404, "upstream_bad_request", "model_not_found"),
    "413": _refused(413, "context_length_exceeded"),
    "overflow": _overflow,
    "408": _repeated(Fail(status=408), "408"),
    "429": _rate_limit,
    "500": _repeated(Fail(status=500), "500"),
    "503": _repeated(Fail(status=503), "503"),
    "malformed": _repeated(Break.MALFORMED, "A chunk that is not JSON"),
    "cut": _repeated(Break.CUT, "A connection that ends in the middle of an answer"),
    "empty": _repeated(Break.EMPTY, "An answer without a word"),
}
