"""Commands in real sandboxes enter their control group before they start. The tree is one of plain directories."""

from __future__ import annotations

import asyncio
import itertools
import os
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.domain.ids import SessionId, TurnId
from hermes.domain.turn.tool_call import Gate
from hermes.sandbox.cgroup import Cgroups, GroupLimits
from hermes.tools.terminal.background_command import BackgroundCommand
from hermes.tools.terminal.terminal import terminal_tool
from hermes.tools.terminal.terminal_settings import TerminalSettings
from hermes.tools.tool import Tool, ToolContext, ToolError, ToolResult
from tests.sandbox.boxes import working_sandbox
from tests.sandbox.cgroup_tree import FakeTree

MEMORY_BYTES = 512 << 20


class Bench:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.tree = FakeTree(root / "groups")
        self.handed: list[BackgroundCommand] = []
        ids = itertools.count()
        limits = GroupLimits(memory_bytes=MEMORY_BYTES, processes=64)
        cgroups = Cgroups(self.tree.root, limits, new_id=lambda: str(next(ids)), tree=self.tree)
        settings = TerminalSettings(
            environ={"PATH": os.environ["PATH"]}, work_of=lambda *_: str(root), memory_bytes=MEMORY_BYTES
        )
        sandbox = replace(working_sandbox(), cgroups=cgroups)
        self.tool: Tool = terminal_tool(settings, lambda *_, **__: Gate(), self._hand, sandbox)

    async def _hand(self, command: BackgroundCommand) -> str:
        self.handed.append(command)
        return "started"

    async def text(self, command: str, *, background: bool = False) -> str:
        context = ToolContext(
            session=SessionId("one"),
            turn=TurnId("turn"),
            call="call",
            platform="test",
            folder=self.root / "folder",
            progress=lambda _: None,
        )
        result = await self.tool.run(context, command=command, background=background)
        assert isinstance(result, ToolResult)
        return result.text

    def groups(self) -> list[str]:
        return sorted(path.name for path in self.tree.root.glob("box-*"))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path.resolve())


async def test_command_runs_in_its_group_from_the_start(bench: Bench) -> None:
    text = await bench.text("cat groups/box-0/cgroup.procs groups/box-0/memory.max")
    assert text.startswith(f"0\n{MEMORY_BYTES}")  # 0 is the process that writes it
    assert await asyncio.to_thread(bench.groups) == []


async def test_command_that_cannot_enter_its_group_does_not_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = FakeTree.write

    def block(tree: FakeTree, path: Path, text: str) -> None:
        (path.parent / "cgroup.procs").mkdir(exist_ok=True)
        write(tree, path, text)

    monkeypatch.setattr(FakeTree, "write", block)
    with pytest.raises(ToolError, match="was not run"):
        await bench.text("touch ran")
    assert not await asyncio.to_thread((bench.root / "ran").exists)


async def test_model_learns_that_the_memory_limit_was_exceeded(bench: Bench) -> None:
    text = await bench.text("echo 'oom_kill 1' > groups/box-0/memory.events; kill -9 $$")
    assert "more than the allowed 512 MB of memory" in text


async def test_background_command_takes_its_group_along(bench: Bench) -> None:
    await bench.text("sleep 60", background=True)
    [command] = bench.handed
    assert command.box is not None
    assert str(bench.tree.root / "box-0") in command.box.prefix
