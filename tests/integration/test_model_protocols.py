"""Each wire protocol with the real daemon: tool calls, reasoning that comes back, and a kill in between."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest

from tests.support import messages_protocol, responses_protocol
from tests.support.daemon_process import DaemonProcess
from tests.support.model_server import DONE, STALL, Reply, delta, stream, usage
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)

CALL = ("call_1", "terminal", {"command": "echo hi"})
THOUGHT = "I need the terminal."


def chat_reply(text: str = "", *, thought: str = "", call: bool = False) -> Reply:
    arguments = {"name": CALL[1], "arguments": json.dumps(CALL[2])}
    calls = [{"index": 0, "id": CALL[0], "function": arguments}]
    says = delta(tool_calls=calls) if call else delta(content=text)
    return stream(delta(reasoning_content=thought), says, delta("tool_calls" if call else "stop"), usage(10, 5), DONE)


class Spoken:
    """One protocol: its configuration, its replies, and what a request repeats of the reasoning."""

    def __init__(self, provider: str, name: str, protocol: str = "auto") -> None:
        self.provider, self.name, self.protocol = provider, name, protocol

    def config(self, base_url: str) -> str:
        return (
            f'model: {{provider: {self.provider}, name: {self.name}, base_url: "{base_url}", '
            f"protocol: {self.protocol}, api_key_env: A_KEY}}\n"
        )

    def reply(self, text: str = "", *, thought: str = "", call: bool = False) -> Reply:
        calls = [CALL] if call else []
        if self.provider == "anthropic":
            return messages_protocol.message(text, thinking=thought, calls=calls)
        if self.protocol == "responses":
            return responses_protocol.response(text, thought=thought, calls=calls)
        return chat_reply(text, thought=thought, call=call)

    def repeated(self, body: dict[str, Any]) -> list[str]:
        if self.provider == "anthropic":
            blocks = [block for each in body["messages"] for block in each["content"]]
            return [block["thinking"] for block in blocks if block["type"] == "thinking"]
        if self.protocol == "responses":
            sealed = [item["encrypted_content"] for item in body["input"] if item["type"] == "reasoning"]
            return [text.removeprefix(responses_protocol.SEALED) for text in sealed]
        return [each["reasoning_content"] for each in body["messages"] if "reasoning_content" in each]

    def complaint(self, model: ScriptedModel) -> str:
        if self.provider == "anthropic":
            return messages_protocol.complaint(model.requests[-1], model.server.headers[-1])
        return responses_protocol.complaint(model.requests[-1]) if self.protocol == "responses" else ""


PROTOCOLS = (
    Spoken("anthropic", "claude-sonnet-4-5"),
    Spoken("openai", "gpt-5", "responses"),
    Spoken("deepseek", "deepseek-x"),
)


@pytest.fixture(params=PROTOCOLS, ids=lambda spoken: spoken.provider)
def spoken(request: pytest.FixtureRequest) -> Spoken:
    found: Spoken = request.param
    return found


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


def has_result(body: dict[str, Any]) -> bool:
    last = (body.get("messages") or body["input"])[-1]
    return "tool_result" in json.dumps(last) or last.get("role") == "tool" or "output" in last


def by_script(spoken: Spoken, at_result: Callable[[], Reply]) -> Callable[[dict[str, Any]], Reply]:
    """Call a tool for every message of a person, and then reply as told."""
    return lambda body: at_result() if has_result(body) else spoken.reply(thought=THOUGHT, call=True)


def test_a_turn_with_a_tool_repeats_its_reasoning_and_shows_none_of_it(spoken: Spoken, model: ScriptedModel) -> None:
    model.on_request = by_script(spoken, lambda: spoken.reply("It said hi.", thought="Done."))
    with DaemonProcess(config=spoken.config(model.server.base_url), environ={"A_KEY": "sk-1"}) as daemon:
        answers = [daemon.ask("go", "s") for _ in range(2)]
        for answer in answers:
            assert answer.text == "It said hi."
            assert answer.json()["choices"][0]["message"]["reasoning_content"] == "Done."
        assert spoken.repeated(model.requests[1]) == [THOUGHT]
        assert spoken.repeated(model.requests[-1]) == [THOUGHT, "Done.", THOUGHT]
        assert spoken.complaint(model) == ""
        shown = daemon.ask("/reasoning show", "s").text
        assert "Done." in shown


def test_reasoning_comes_back_after_a_kill_in_the_next_model_call(spoken: Spoken, model: ScriptedModel) -> None:
    model.on_request = by_script(spoken, lambda: stream(b": alive\n\n", STALL))
    daemon = DaemonProcess(config=spoken.config(model.server.base_url), environ={"A_KEY": "sk-1"})
    with daemon, ThreadPoolExecutor(1) as pool:
        lost = pool.submit(daemon.ask, "go", "s")
        eventually(lambda: len(model.requests) == 2)
        daemon.kill()
        assert lost.exception() is not None
        model.on_request = by_script(spoken, lambda: spoken.reply("It said hi."))
        daemon.start()
        eventually(lambda: len(model.requests) >= 3)
        assert spoken.repeated(model.requests[2]) == [THOUGHT]
        assert spoken.complaint(model) == ""
        assert daemon.ask("and again", "s").text == "It said hi."


def test_the_prompt_prefix_is_byte_identical_across_turns(model: ScriptedModel) -> None:
    spoken = PROTOCOLS[2]
    model.on_request = by_script(spoken, lambda: spoken.reply("It said hi.", thought="Done."))
    with DaemonProcess(config=spoken.config(model.server.base_url), environ={"A_KEY": "sk-1"}) as daemon:
        for text in ("one", "two", "three"):
            daemon.ask(text, "s")
        daemon.terminate()
        daemon.start()
        daemon.ask("four", "s")
    bodies = model.server.bodies
    assert len(bodies) == 8
    for before, after in pairwise(bodies):
        messages, tools = before.split(b'],"tools":', 1)
        assert after.startswith(messages)
        assert after.split(b'],"tools":', 1)[1] == tools


def cached_parts(body: dict[str, Any]) -> list[str]:
    """Return what a provider caches of a request, in order: tools, instructions, then each part of the messages.

    A breakpoint marks the place up to which the cache is used, and is not part of what is cached.
    """
    if "input" in body:
        return [json.dumps(each) for each in (body["tools"], *body["input"])]
    parts = [body["tools"], *body["system"]]
    parts += [(each["role"], part) for each in body["messages"] for part in each["content"]]
    return [json.dumps(part).replace(', "cache_control": {"type": "ephemeral"}', "") for part in parts]


@pytest.mark.parametrize("spoken", PROTOCOLS[:2], ids=lambda spoken: spoken.protocol)
def test_the_cached_prefix_of_each_protocol_only_grows(spoken: Spoken, model: ScriptedModel) -> None:
    model.on_request = by_script(spoken, lambda: spoken.reply("It said hi.", thought="Done."))
    with DaemonProcess(config=spoken.config(model.server.base_url), environ={"A_KEY": "sk-1"}) as daemon:
        for text in ("one", "two"):
            daemon.ask(text, "s")
        daemon.terminate()
        daemon.start()
        daemon.ask("three", "s")
    assert len(model.requests) == 6
    for before, after in pairwise(map(cached_parts, model.requests)):
        assert after[: len(before)] == before
        assert len(after) > len(before)


def test_an_outage_is_waited_out_and_the_client_gets_one_answer(model: ScriptedModel) -> None:
    spoken = PROTOCOLS[2]
    down = Reply(status=503, headers={"Content-Type": "text/plain"}, parts=(b"down",))
    model.on_request = lambda body: down if len(model.requests) <= 5 else spoken.reply("back")
    environ = {"A_KEY": "sk-1", "HERMES_MODEL_PATIENCE_S": "60"}
    with DaemonProcess(config=spoken.config(model.server.base_url), environ=environ) as daemon:
        assert daemon.ask("go", "s").text == "back"
