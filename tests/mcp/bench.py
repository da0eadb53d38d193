"""MCP client on its own: facts in memory, real server processes, a clock that the test moves."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from hermes.config.mcp.mcp_servers import parse_server
from hermes.domain.access.role import Role
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.mcp.mcp_question import McpQuestion
from hermes.domain.mcp.server_spec import McpServerSpec, SamplingSpec
from hermes.mcp.fleet import McpFleet
from hermes.mcp.server_requests import SampledText, SampleRequest
from hermes.tools.tool import ToolContext
from hermes.tools.toolbox import Toolbox

ROGUE = Path(__file__).parents[1] / "support" / "rogue_mcp_server.py"


class Facts:
    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    async def fact(self, name: str) -> bytes | None:
        return self.values.get(name)

    async def remember(self, name: str, value: bytes | None) -> None:
        if value is None:
            self.values.pop(name, None)
        else:
            self.values[name] = value

    async def facts(self, prefix: str) -> Sequence[str]:
        return [name for name in self.values if name.startswith(prefix)]


def server_spec(name: str, given: Mapping[str, Any]) -> McpServerSpec:
    found, problems = parse_server(name, dict(given))
    assert found is not None, problems
    return found


def rogue(mode: str, *, state: Path | None = None, name: str = "rogue", **more: Any) -> McpServerSpec:
    args = ["-S", "-E", str(ROGUE), mode, *([str(state)] if state is not None else [])]
    return server_spec(name, {"command": sys.executable, "args": args, "trust": "full", **more})


class Bench:
    def __init__(self, folder: Path, *specs: McpServerSpec, facts: Facts | None = None) -> None:
        self.folder = folder
        self.facts = facts or Facts()
        self.shift_s = 0.0
        self.announced: list[tuple[McpQuestion, str]] = []
        self.told: list[str] = []
        self.sampled: list[SampleRequest] = []
        self.progress: list[str] = []
        self.toolbox = Toolbox((), toolsets={"default": ("mcp",), "guest": ()})
        self.fleet = McpFleet(
            specs,
            facts=self.facts,
            clock=self.now,
            jitter=lambda: 1.0,
            environ={**os.environ, "HERMES_API_KEY": "secret-key", "SOME_TOKEN": "tok-123456"},
            data_dir=folder,
            complete=self._complete,
            announce=self._announce,
            tell=self._tell,
        )
        self.fleet.offer_to(self.toolbox.offer)

    def now(self) -> float:
        return time.time() + self.shift_s

    async def _complete(self, context: ToolContext, spec: SamplingSpec, request: SampleRequest) -> SampledText:
        self.sampled.append(request)
        return SampledText(text="sampled", model="model-1")

    async def _announce(self, question: McpQuestion, text: str) -> None:
        self.announced.append((question, text))

    async def _tell(self, _name: str, text: str) -> None:
        self.told.append(text)

    def context(self, *, session: str = "s", role: Role = Role.OWNER) -> ToolContext:
        return ToolContext(
            session=SessionId(session),
            turn=TurnId("turn"),
            call="call_1",
            platform="api",
            folder=self.folder,
            role=role,
            progress=self.progress.append,
        )

    async def call(self, tool: str = "mcp__rogue__echo", *, context: ToolContext | None = None, **given: Any) -> Any:
        return await self.toolbox.run(tool, given, context or self.context())

    async def __aenter__(self) -> Self:
        await self.fleet.prepare()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.fleet.close()

    def state(self, name: str = "rogue") -> str:
        return next(view.state for view in self.fleet.views() if view.name == name)
