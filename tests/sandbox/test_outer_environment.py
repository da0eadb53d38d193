"""Files and variables of a command must not reach the programs that make the next sandbox."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from hermes.agent.tool_step import Folders
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.process.process import Handle, ProcessSpec
from hermes.domain.process.sandbox_launch import SWAPPED
from hermes.domain.turn.tool_call import Gate
from hermes.sandbox.sandbox import Sandbox, open_sandbox
from hermes.sandbox.sandbox_plan import BadWorkdirError, SandboxRules
from hermes.tools.terminal.terminal import terminal_tool
from hermes.tools.terminal.terminal_settings import TerminalSettings
from hermes.tools.tool import Tool, ToolContext, ToolError, ToolResult
from tests.processes.stage import ProcessFixture
from tests.sandbox.boxes import working_sandbox


@pytest.fixture
def sandbox() -> Sandbox:
    return working_sandbox()


def a_terminal(sandbox: Sandbox, work: Path) -> Tool:
    settings = TerminalSettings(environ=os.environ, work_of=lambda *_: str(work))
    return terminal_tool(settings, lambda command, cwd, **_: Gate(), None, sandbox)


def a_context(folder: Path) -> ToolContext:
    return ToolContext(session=SessionId("s"), turn=TurnId("t"), call="c", platform="cli", folder=folder)


async def run_in_loop(tool: Tool, folder: Path, command: str) -> str:
    result = await tool.run(a_context(folder), command=command)
    assert isinstance(result, ToolResult)
    return result.text


def run(tool: Tool, folder: Path, command: str) -> str:
    return asyncio.run(run_in_loop(tool, folder, command))


@pytest.mark.parametrize("own", [True, False])
def test_kept_variables_do_not_reach_programs_outside(sandbox: Sandbox, tmp_path: Path, own: bool) -> None:
    folder = tmp_path / "conversation"
    work = folder / "files" if own else tmp_path / "project"
    work.mkdir(parents=True)
    canary = work / "outside"
    tool = a_terminal(sandbox, work)
    programs = "bwrap unshare setpriv mount mkdir sh stat env"
    script = f"#!/bin/sh\\n[ -e /home/agent ] || : >{canary}\\nexit 1\\n"
    run(tool, folder, f"mkdir b; for p in {programs}; do printf '{script}' >b/$p; chmod +x b/$p; done")
    kept = "export PATH=$PWD/b:$PATH GLIBC_TUNABLES=x ENV=$PWD/b/sh"
    run(tool, folder, kept)
    assert f"{work}/b:" in run(tool, folder, "echo $PATH"), "the command itself keeps its variables"
    assert not canary.exists()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler")
@pytest.mark.parametrize("own", [True, False])
def test_preloaded_library_is_not_loaded_outside(sandbox: Sandbox, tmp_path: Path, own: bool) -> None:
    folder = tmp_path / "conversation"
    work = folder / "files" if own else tmp_path / "project"
    work.mkdir(parents=True)
    source = tmp_path / "e.c"
    canary = tmp_path / "canary"
    source.write_text(
        "#include <stdio.h>\n__attribute__((constructor)) static void f(void)"
        f'{{ FILE *file = fopen("{canary}", "w"); if (file) fclose(file); }}\n'
    )
    library = work / "e.so"
    subprocess.run(("gcc", "-shared", "-fPIC", "-o", str(library), str(source)), check=True)
    library.chmod(0o755)
    tool = a_terminal(sandbox, work)
    run(tool, folder, f"export LD_PRELOAD={library}")
    assert "ran" in run(tool, folder, "echo ran")
    assert not canary.exists()
    background = ProcessFixture(tmp_path / "processes")
    plan = sandbox.plan(sandbox.place(folder, str(work)))
    environ = {"PATH": "/usr/bin:/bin", "LD_PRELOAD": str(library)}
    spec = ProcessSpec(
        id=f"proc_{os.getpid()}_{own}",
        argv=("/bin/sh", "-c", "exit 7"),
        cwd="/",
        environ=environ,
        box=sandbox.box(plan),
    )
    handle = background.start(spec)
    assert isinstance(handle, Handle)
    end = background.wait(handle, 20)
    assert end is not None
    assert end.code == 7
    assert not canary.exists()


def test_a_git_directory_that_was_swapped_for_a_link_is_not_mounted(tmp_path: Path) -> None:
    """The link is relative and leads to what the sandbox may read: bubblewrap itself fails with any other."""
    working_sandbox()
    folder, work, target = tmp_path / "conversation", tmp_path / "project", tmp_path / "target"
    for path in (folder, work / ".git" / "hooks", target / "hooks"):
        path.mkdir(parents=True)
    sandbox = open_sandbox(SandboxRules(read_paths=(str(target),)), home=str(Path.home()), enabled=True)
    place = sandbox.place(folder, str(work))
    (target / "commondir").write_text(".")  # else a mount fails, and nothing is run for that reason
    (work / ".git").rename(work / "old")
    (work / ".git").symlink_to("../target")
    box = sandbox.box(sandbox.plan(place))
    background = ProcessFixture(tmp_path / "processes")
    environ = {"PATH": "/usr/bin:/bin"}
    argv = ("/bin/sh", "-c", f"echo reached > {work}/.git/CANARY")
    spec = ProcessSpec(id=f"proc_{os.getpid()}_git", argv=argv, cwd="/", environ=environ, box=box)
    handle = background.start(spec)
    if isinstance(handle, Handle):
        end = background.wait(handle, 20)
        assert end is not None
        assert end.code != 0
        said = background.tail(handle, 1000).data.decode()
        assert SWAPPED in said, said
    assert not (target / "CANARY").exists()


def test_a_working_directory_behind_a_link_is_refused(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(BadWorkdirError):
        sandbox.place(tmp_path / "conversation", str(tmp_path / "link"))
    with pytest.raises(ToolError, match="symbolic link"):
        run(a_terminal(sandbox, tmp_path / "link"), tmp_path / "conversation", "true")


def test_no_two_sessions_share_a_folder(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    names = ["proj_alpha", "proj.alpha", "proj:alpha", "proj alpha", "proj_alpha-"]
    assert len({folders.path(SessionId(name)) for name in names}) == len(names)
    assert folders.path(SessionId("20261118_010203_0a1b2c3d")).name == "20261118_010203_0a1b2c3d"


def test_removal_takes_closed_and_deep_directories(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    folder = folders.of(SessionId("s"))
    (folder / "closed" / "in").mkdir(parents=True)
    (folder / "closed").chmod(0)
    deep = os.open(folder, os.O_RDONLY)
    for _ in range(2_000):
        os.mkdir("d", dir_fd=deep)
        below = os.open("d", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)
    folders.remove(SessionId("s"))
    assert list(tmp_path.iterdir()) == []
    assert stat.S_ISDIR(tmp_path.stat().st_mode)
