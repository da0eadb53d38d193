"""A conversation's workplace on a real disk, and the tools in it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from hermes.domain.ids import SessionId, TurnId
from hermes.domain.turn.tool_call import Gate, Verdict
from hermes.sandbox.sandbox import Sandbox
from hermes.tools.files.boxed_files import BoxedFiles
from hermes.tools.files.file_tools import file_tools
from hermes.tools.terminal.command_output import OutputLimits
from hermes.tools.todo import todo_tool
from hermes.tools.tool import ToolContext, ToolResult
from hermes.tools.toolbox import Toolbox
from hermes.tools.workplace import Workplace


class Workbench:
    """Files called `secret*` may not be touched; `asked*` need leave."""

    def __init__(self, root: Path, sandbox: Sandbox | None = None) -> None:
        self.cwd = (root / "work").resolve()
        self.folder = root / "conversation"
        self.judged: list[tuple[str, bool]] = []
        for directory in (self.cwd, self.folder, root / "home"):
            directory.mkdir()
        place = Workplace(default_cwd=str(self.cwd), home=str(root / "home"), hermes_home=str(root / "hermes"))
        self.boxed = BoxedFiles(sandbox, place) if sandbox is not None else None
        tools = (*file_tools(place, self._gate, self.boxed), todo_tool())
        self.toolbox = Toolbox(tools, toolsets={"default": ["file", "todo"]}, limits=OutputLimits())
        self.context = a_context(self.folder)

    async def close(self) -> None:
        if self.boxed is not None:
            await self.boxed.close()

    def _gate(self, path: str, writing: bool, _work: str = "") -> Gate:
        self.judged.append((path, writing))
        name = Path(path).name
        if name.startswith("secret"):
            return Gate(verdict=Verdict.BLOCK, reason="it is a secret", rules=("secret",))
        return Gate(verdict=Verdict.ASK, reason=name, rules=(name,)) if name.startswith("asked") else Gate()

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    async def call(self, tool: str, **arguments: Any) -> ToolResult:
        """As a turn does it: proposed, then run."""
        given = json.dumps(arguments)
        proposal = await asyncio.to_thread(self.toolbox.propose, tool, given, self.context)
        if proposal.problem:
            return ToolResult(text=proposal.problem, ok=False)
        return await self.toolbox.run(tool, proposal.arguments, self.context)

    async def text(self, tool: str, **arguments: Any) -> str:
        result = await self.call(tool, **arguments)
        assert result.ok, result.text
        return result.text

    async def problem(self, tool: str, **arguments: Any) -> str:
        result = await self.call(tool, **arguments)
        assert not result.ok, result.text
        return result.text

    def tree(self) -> dict[str, bytes]:
        """All that is there: nothing may be left over."""
        return {str(file.relative_to(self.cwd)): file.read_bytes() for file in self.cwd.rglob("*") if file.is_file()}


def a_context(folder: Path, *, call: str = "call_1", platform: str = "cli") -> ToolContext:
    return ToolContext(session=SessionId("s"), turn=TurnId("t"), call=call, platform=platform, folder=folder)
