from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.tool_call_parser import MAX_QUICK, Proposed, is_quick, propose_all, with_safe_ids
from hermes.domain.access.role import Role
from hermes.domain.turn.tool_call import Gate
from hermes.tools.tool import ToolContext, tool
from hermes.tools.toolbox import Toolbox
from tests.tools.workbench import a_context


@tool("talk")
async def say(context: ToolContext, *, text: str = "hello", times: float = 1) -> str:
    """Say it."""
    return text


@tool("talk", decide=lambda arguments, context: Gate())
async def shout(context: ToolContext, *, text: str) -> str:
    """Say it loudly."""
    return text


TOOLBOX = Toolbox((say, shout), toolsets={"default": ["talk"]})


def a_call(arguments: str = "{}", name: str = "say", id_: str = "c") -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def proposed(*calls: dict[str, Any], cut: bool = False) -> Proposed:
    return propose_all(calls, TOOLBOX, a_context(Path("unused")), cut=cut)


def test_a_good_call_is_stored_as_it_came() -> None:
    given_call = a_call('{"text": "hi"}')
    found = proposed(given_call)
    assert found.messages == (given_call,)
    assert (found.calls[0].name, found.calls[0].problem) == ("say", "")


@pytest.mark.parametrize(
    "arguments", ["", "  ", "{", "[]", '"x"', '{"times": NaN}', '{"text": "\\ud800"}', "1" * 5000]
)
def test_arguments_that_are_no_object_are_stored_as_none_and_only_left_out_ones_run(arguments: str) -> None:
    found = proposed(a_call(arguments))
    assert found.messages[0]["function"]["arguments"] == "{}"
    assert bool(found.calls[0].problem) == bool(arguments.strip())


@given(st.text(), st.text())
def test_whatever_a_model_writes_every_endpoint_can_read_it_again(name: str, arguments: str) -> None:
    function = proposed(a_call(arguments, name)).messages[0]["function"]
    assert function["name"].replace("_", "").replace("-", "").isalnum() or set(function["name"]) <= {"_", "-"}
    assert 1 <= len(function["name"]) <= 64
    assert isinstance(json.loads(function["arguments"]), dict)


def test_only_the_last_call_of_an_answer_can_be_cut_and_only_if_it_is_not_whole() -> None:
    first, last = proposed(a_call(""), a_call("", id_="d"), cut=True).calls
    assert first.problem == ""
    assert "length limit" in last.problem
    assert proposed(a_call("{}"), cut=True).calls[0].problem == ""


def test_ids_are_unique_and_safe() -> None:
    made = with_safe_ids([a_call(id_=each) for each in ("a", "a", "", "b c", "x" * 65)], "turn1234567", 2)
    ids = [call["id"] for call in made]
    assert ids == ["a", *(f"call_turn1234_2_{number}" for number in (1, 2, 3, 4))]


def test_only_calls_without_gates_and_of_few_words_are_quick() -> None:
    assert is_quick([a_call(), a_call()], TOOLBOX, "api", Role.OWNER)
    assert not is_quick([a_call(), a_call(name="shout")], TOOLBOX, "api", Role.OWNER)
    assert not is_quick([a_call(name="whisper")], TOOLBOX, "api", Role.OWNER)
    assert not is_quick([a_call("x" * (MAX_QUICK + 1))], TOOLBOX, "api", Role.OWNER)


@tool("talk")
async def desk(context: ToolContext, *, action: str, id: str = "", data: str = "") -> str:  # noqa: A002
    """Many things."""
    return action


def test_whoever_is_asked_about_an_action_sees_what_it_is_done_with() -> None:
    toolbox = Toolbox((desk,), toolsets={"default": ["talk"]})
    written = a_call('{"action": "write", "id": "proc_1", "data": "rm -r x"}', "desk")
    [call] = propose_all((written,), toolbox, a_context(Path("unused")), cut=False).calls
    assert call.summary == "desk: write proc_1 rm -r x"
