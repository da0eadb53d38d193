from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermes.domain.access.role import Role
from hermes.domain.errors import ConfigError
from hermes.domain.turn.tool_call import Effect, Gate, Verdict
from hermes.tools.terminal.command_output import OutputLimits
from hermes.tools.tool import Tool, ToolContext, ToolError, ToolResult, tool
from hermes.tools.toolbox import Toolbox
from tests.tools.workbench import a_context


def _decide(arguments: Mapping[str, Any], context: ToolContext) -> Gate:
    if arguments["text"] == "odd":
        raise ToolError("that text cannot be judged")
    return Gate(verdict=Verdict.ASK, reason="always", rules=("echo",))


@tool("talk", parallel=True, effect=Effect.PURE, decide=_decide)
async def echo(context: ToolContext, *, text: str, times: int = 1) -> str:
    """Say it again."""
    return text * times


@tool("talk")
async def shout(context: ToolContext, *, text: str) -> ToolResult:
    """Say it loudly."""
    if text == "refuse":
        raise ToolError("not now; ask later")
    if text == "break":
        raise RuntimeError("the line\nis broken")
    if text == "wait":
        await asyncio.Event().wait()
    return ToolResult(text=text.upper())


@tool("far", available=lambda: "there is no radio")
async def radio(context: ToolContext) -> str:
    """Send it far away."""
    return ""


TOOLS: tuple[Tool, ...] = (shout, radio, echo)


def a_toolbox(**settings: Any) -> Toolbox:
    return Toolbox(TOOLS, **{"toolsets": {"default": ["talk", "far"], "web": ["echo"]}, **settings})


@tool("shell")
async def shell(context: ToolContext, *, command: str, background: bool = False) -> str:
    """Run it."""
    return command


@tool("process")
async def process(context: ToolContext) -> str:
    """Look after it."""
    return ""


@pytest.mark.parametrize(
    ("platform", "role", "guest", "runs"),
    [
        ("telegram", Role.GUEST, ["shell"], False),
        ("telegram", Role.GUEST, ["shell", "process"], True),
        ("telegram", Role.USER, ["shell"], True),
        ("key-ci", Role.USER, ["shell", "process"], False),
        ("key-ci", Role.GUEST, ["shell", "process"], False),
        ("key-ci", Role.OWNER, ["shell"], True),
    ],
)
def test_parameter_needs_the_tool_that_it_requires(
    tmp_path: Path, platform: str, role: Role, guest: list[str], *, runs: bool
) -> None:
    tools = (replace(shell, requires=(("background", "process"),)), process)
    box = Toolbox(tools, toolsets={"default": ["shell", "process"], "api": ["shell", "process"], "guest": guest})
    context = replace(a_context(tmp_path), platform=platform, role=role)
    assert not box.check("shell", '{"command": "a"}', context).problem
    problem = box.check("shell", '{"command": "a", "background": true}', context).problem
    assert (not problem) == runs
    assert runs or "background needs the tool process" in problem
    assert ("process" in box.names(platform, role)) == runs


def test_each_platform_has_its_toolsets_and_what_is_disabled_is_nowhere() -> None:
    assert a_toolbox().names("cli") == ("echo", "shout")
    assert a_toolbox().names("web") == ("echo",)
    assert a_toolbox(disabled=["echo"]).names("web") == ()
    assert a_toolbox(disabled=["talk"]).names("cli") == ()
    assert a_toolbox(toolsets={}).names("cli") == ()


def test_guests_have_only_what_is_named_for_them_and_enabled_there() -> None:
    toolbox = a_toolbox(toolsets={"default": ["shout"], "web": ["talk"], "guest": ["echo"]})
    assert toolbox.names("web") == ("echo", "shout")
    assert toolbox.names("web", Role.USER) == ("echo", "shout")
    assert toolbox.names("web", Role.GUEST) == ("echo",)
    assert toolbox.names("cli", Role.GUEST) == ()
    assert [each["function"]["name"] for each in json.loads(toolbox.schemas("web", Role.GUEST))] == ["echo"]
    assert len(json.loads(toolbox.schemas("web"))) == 2
    assert a_toolbox().names("cli", Role.GUEST) == (), "nothing is named for them"


async def test_a_guests_call_of_another_tool_is_refused(tmp_path: Path) -> None:
    toolbox = a_toolbox(toolsets={"default": ["talk"], "guest": ["echo"]})
    guest = replace(a_context(tmp_path), role=Role.GUEST)
    proposal = toolbox.propose("shout", '{"text": "a"}', guest)
    assert "not enabled here. Enabled tools: echo" in proposal.problem
    assert not (await toolbox.run("shout", {"text": "a"}, guest)).ok


def test_the_schemas_are_the_same_bytes_each_time_and_in_any_order() -> None:
    toolbox = a_toolbox()
    assert toolbox.schemas("cli") is toolbox.schemas("cli")
    assert toolbox.schemas("cli") == Toolbox(TOOLS[::-1], toolsets={"default": ["talk"]}).schemas("cli")
    [first, _] = json.loads(toolbox.schemas("cli"))
    assert first["type"] == "function"
    assert first["function"]["name"] == "echo"
    assert first["function"]["description"] == "Say it again."
    assert first["function"]["parameters"]["required"] == ["text"]


@pytest.mark.parametrize("settings", [{"disabled": ["shuot"]}, {"toolsets": {"cli": ["shuot"]}}])
def test_a_setting_that_names_no_tool_is_an_error_with_a_suggestion(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="'shuot'; did you mean 'shout'"):
        a_toolbox(**settings)


def test_a_good_call_is_proposed_with_all_that_a_turn_must_know(tmp_path: Path) -> None:
    proposal = a_toolbox().propose("echo", '{"text": "a", "times": "2"}', a_context(tmp_path))
    assert not proposal.problem
    assert proposal.arguments == {"text": "a", "times": 2}
    assert proposal.parallel
    assert proposal.effect is Effect.PURE
    assert proposal.gate == Gate(verdict=Verdict.ASK, reason="always", rules=("echo",))


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("ecko", "{}", "Unknown tool 'ecko'. Did you mean echo?"),
        ("zzz", "{}", "Available tools: echo, shout"),
        ("radio", "{}", "not available on this machine: there is no radio"),
        ("echo", '{"text": "a"', "not valid JSON"),
        ("echo", "", "'text' is missing"),
        ("echo", "[]", "must be a JSON object"),
        ("echo", '{"text": 5}', "'text' must be of type string"),
        ("echo", '{"text": "\\ud800"}', "surrogate"),
        ("echo", '{"text": "\ud800"}', "surrogate"),
        ("echo", "[" * 100_000, "nested too deeply"),
        ("echo", '{"text": "a", "times": ' + "9" * 5_000 + "}", "too long"),
        ("echo", '{"text": "odd"}', "cannot be judged"),
    ],
)
def test_a_bad_call_is_explained(name: str, arguments: str, said: str, tmp_path: Path) -> None:
    proposal = a_toolbox().propose(name, arguments, a_context(tmp_path))
    assert said in proposal.problem
    assert proposal.arguments == {}


def test_a_tool_of_another_platform_is_not_enabled_here(tmp_path: Path) -> None:
    proposal = a_toolbox().propose("shout", "{}", a_context(tmp_path, platform="web"))
    assert proposal.problem == "The tool shout is not enabled here. Enabled tools: echo."


async def test_whatever_a_tool_does_comes_back_as_a_result(tmp_path: Path) -> None:
    toolbox, context = a_toolbox(), a_context(tmp_path)
    assert await toolbox.run("echo", {"text": "a", "times": 3}, context) == ToolResult(text="aaa")
    assert await toolbox.run("shout", {"text": "refuse"}, context) == ToolResult(text="not now; ask later", ok=False)
    broken = await toolbox.run("shout", {"text": "break"}, context)
    assert not broken.ok
    assert broken.text.startswith("shout failed unexpectedly (RuntimeError: the line is broken)")
    assert "Traceback" not in broken.text
    gone = await toolbox.run("radio", {}, context)
    assert not gone.ok


async def test_a_cancelled_call_is_cancelled(tmp_path: Path) -> None:
    task = asyncio.ensure_future(a_toolbox().run("shout", {"text": "wait"}, a_context(tmp_path)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_every_output_is_redacted_and_limited(tmp_path: Path) -> None:
    toolbox = a_toolbox(limits=OutputLimits(size_bytes=1_000), redact=lambda text: text.replace("hunter2", "***"))
    result = await toolbox.run("echo", {"text": "my hunter2\n", "times": 500}, a_context(tmp_path))
    spilled = (tmp_path / "outputs" / "call_1.txt").read_text()
    assert len(result.text.encode()) <= 1_000
    assert "hunter2" not in result.text + spilled
    assert spilled == "my ***\n" * 500
