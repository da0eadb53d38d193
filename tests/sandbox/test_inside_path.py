"""Directories of a sandbox, resolved from outside: a command's links reveal nothing about the machine."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from hermes.domain.ids import SessionId, TurnId
from hermes.domain.turn.tool_call import Gate
from hermes.sandbox.inside_path import is_directory_inside
from hermes.sandbox.sandbox import Sandbox
from hermes.sandbox.sandbox_plan import HostMachine, SandboxPlan, SandboxRules, SessionPaths, make_plan
from hermes.tools.terminal.shell_state import ShellState, save
from hermes.tools.terminal.terminal import terminal_tool
from hermes.tools.terminal.terminal_settings import TerminalSettings
from hermes.tools.tool import Tool, ToolContext, ToolError, ToolResult
from tests.sandbox.boxes import working_sandbox


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for name in ("project/sub/deep", "elsewhere/there", "conversation/tmp", "conversation/home"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path / "project"


@pytest.fixture
def plan(work: Path) -> SandboxPlan:
    folder = work.parent / "conversation"
    machine = HostMachine(directories=frozenset(), links={"/bin": "usr/bin"}, home="/home/ann")
    place = SessionPaths(work=str(work), tmp=str(folder / "tmp"), home=str(folder / "home"))
    return make_plan(machine, SandboxRules(), place)


def test_directories_of_the_sandbox_are_found(work: Path, plan: SandboxPlan) -> None:
    (work / "file").touch()
    (work / "inner").symlink_to("sub/deep")
    (work / "absolute").symlink_to(work / "sub")
    for path in (work, work / "sub", work / "inner", work / "absolute/deep", work / "inner/../../sub", work.parent):
        assert is_directory_inside(str(path), plan), path
    for name in ("/", "/usr", "/bin", "/tmp", "/home/agent"):
        assert is_directory_inside(name, plan), name
    for path in (work / "file", work / "file/..", work / "none", work / "none/..", Path("/root"), work / "a\0b"):
        assert not is_directory_inside(str(path), plan), path


def test_link_leads_to_nothing_outside(work: Path, plan: SandboxPlan) -> None:
    (work / "out").symlink_to(work.parent / "elsewhere")
    (work / "up").symlink_to("../elsewhere")
    (work / "loop").symlink_to("loop")
    for name in ("out", "out/there", "up", "up/there", "../elsewhere", "loop"):
        assert not is_directory_inside(str(work / name), plan), name


def test_temporary_directory_is_the_one_of_the_sandbox(work: Path, plan: SandboxPlan) -> None:
    (work.parent / "conversation/tmp/mine").mkdir()
    (work / "link").symlink_to("/tmp/mine")
    assert is_directory_inside(str(work / "link"), plan)
    assert is_directory_inside("/tmp/mine", plan)


def a_terminal(sandbox: Sandbox, work: Path) -> Tool:
    settings = TerminalSettings(environ=os.environ, work_of=lambda *_: str(work))
    return terminal_tool(settings, lambda command, cwd, **_: Gate(), None, sandbox)


def run(tool: Tool, folder: Path, workdir: str = "") -> str:
    return asyncio.run(run_in_loop(tool, folder, workdir))


async def run_in_loop(tool: Tool, folder: Path, workdir: str) -> str:
    context = ToolContext(session=SessionId("s"), turn=TurnId("t"), call="c", platform="cli", folder=folder)
    try:
        result = await tool.run(context, command="pwd", workdir=workdir)
    except ToolError as error:
        return str(error)
    assert isinstance(result, ToolResult)
    return result.text


def test_terminal_does_not_reveal_whether_an_outside_path_exists(work: Path) -> None:
    tool, folder = a_terminal(working_sandbox(), work), work.parent / "conversation"
    (work / "here").symlink_to(work.parent / "elsewhere")
    (work / "gone").symlink_to(work.parent / "nowhere")
    assert run(tool, folder, "here").replace("here", "gone") == run(tool, folder, "gone")
    said = []
    for name in ("here", "gone"):
        save(folder, ShellState(cwd=str(work / name), changed={}))
        said.append(run(tool, folder).replace("here", "gone"))
    assert said[0] == said[1]
    assert said[0].startswith(f"{work}\n")
