"""Factory of the MCP client. The first use imports and makes it: configured servers cost nothing at the start."""

from __future__ import annotations

import asyncio
import importlib
import json
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hermes.actors.process.process_services import Announcement
from hermes.agent.chat_message import encode
from hermes.app.actor_system import ActorSystem
from hermes.config.home import Home
from hermes.config.settings import Config
from hermes.domain.errors import ModelError
from hermes.domain.ids import SessionId
from hermes.domain.mcp.mcp_question import McpQuestion
from hermes.domain.mcp.server_spec import McpServerSpec, SamplingSpec
from hermes.domain.read.views import ActorView
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage
from hermes.ports.mcp_servers.mcp_control import McpServers
from hermes.services.side_completion import SideCompletion

if TYPE_CHECKING:
    from hermes.app.factories.turn_environment import PreparedTurn
    from hermes.mcp.fleet import McpFleet
    from hermes.mcp.server_requests import SampledText, SampleRequest
    from hermes.tools.tool import ToolContext
    from hermes.tools.toolbox import Toolbox

_NO_INSTRUCTIONS = EncodedMessage(b"")


class McpFacts:
    """Small durable values, through the session service."""

    def __init__(self, system: ActorSystem) -> None:
        self._system = system

    async def fact(self, name: str) -> bytes | None:
        return await self._system.sessions.fact(name)

    async def remember(self, name: str, value: bytes | None) -> None:
        await self._system.sessions.remember(name, value)

    async def facts(self, prefix: str) -> Sequence[str]:
        return await self._system.ports.journal.fetch(lambda reader: reader.facts(prefix))


class LazyMcp(McpServers):
    """The configured servers. The client behind them is made when something needs it."""

    def __init__(self, config: Config, home: Home, environ: Mapping[str, str], system: ActorSystem) -> None:
        self.specs: tuple[McpServerSpec, ...] = config.mcp_servers
        self.side: SideCompletion | None = None  # set once the agent is there
        self._home = home
        self._environ = environ
        self._system = system
        self._fleet: McpFleet | None = None
        self._making = asyncio.Lock()
        self._toolbox: Toolbox | None = None

    async def prepare_turn(self, made: PreparedTurn) -> None:
        await self.prepare(made.toolbox)

    async def prepare(self, toolbox: Toolbox) -> None:
        """Give the toolbox the tools of the servers. Without servers this does nothing."""
        if not self.specs and self._fleet is None:
            return
        fleet = await self._made()
        if self._toolbox is not toolbox:
            self._toolbox = toolbox
            fleet.offer_to(toolbox.offer)
        await fleet.prepare()

    async def _made(self) -> McpFleet:
        async with self._making:
            if self._fleet is None:
                module = await asyncio.to_thread(importlib.import_module, "hermes.mcp.fleet")
                fleet: McpFleet = module.McpFleet(
                    self.specs,
                    facts=McpFacts(self._system),
                    clock=self._system.ports.clock,
                    jitter=secrets.SystemRandom().random,
                    environ=self._environ,
                    data_dir=self._home.data_dir,
                    complete=self._complete,
                    announce=self._announce,
                    tell=self._tell,
                )
                self._fleet = fleet
            return self._fleet

    # ------------------------------------------------------------ for the client

    async def _announce(self, question: McpQuestion, text: str) -> None:
        said = Announcement(
            id=f"mcp:{question.id}:{question.asked_at:.0f}", session=SessionId(question.session), text=text
        )
        await self._system.notices.announce(said)

    async def _tell(self, name: str, text: str) -> None:
        await self._system.chat.homes.tell(name, text)

    async def _complete(self, context: ToolContext, spec: SamplingSpec, request: SampleRequest) -> SampledText:
        from hermes.mcp.server_requests import SampledText  # noqa: PLC0415 - loaded with the client

        assert self.side is not None
        options: dict[str, Any] = {"max_tokens": request.max_tokens}
        if request.temperature is not None:
            options["temperature"] = request.temperature
        report = await self.side.complete(
            self._system.ports.ids.turn(),
            tuple(encode({"role": role, "content": text}) for role, text in request.messages),
            encode({"role": "system", "content": request.system}) if request.system else _NO_INSTRUCTIONS,
            options=json.dumps(options).encode(),
            source=Source(platform=context.platform, user=context.by.partition(":")[2], role=context.role),
            model=spec.model,
        )
        if report.failure is not None:
            raise ModelError(report.failure)
        return SampledText(text=report.text, model=report.model)

    # ------------------------------------------------------------ for people

    async def listed(self) -> list[dict[str, Any]]:
        return await (await self._made()).listed()

    async def shown(self, name: str) -> dict[str, Any]:
        return await (await self._made()).shown(name)

    async def tested(self, name: str) -> dict[str, Any]:
        return await (await self._made()).tested(name)

    async def approve(self, name: str) -> dict[str, Any]:
        return await (await self._made()).approve(name)

    async def stop(self, name: str) -> dict[str, Any]:
        return await (await self._made()).stop(name)

    async def open_questions(self) -> list[McpQuestion]:
        return await (await self._made()).open_questions()

    async def question(self, name: str) -> McpQuestion:
        return await (await self._made()).question(name)

    async def answer(self, name: str, text: str | None) -> tuple[McpQuestion, bool]:
        return await (await self._made()).answer(name, text)

    def views(self) -> list[ActorView]:
        """Return the running servers and those with a problem, as actors are shown."""
        if self._fleet is None:
            return []
        return [view for view in self._fleet.views() if view.state not in ("stopped", "disabled")]

    def summary(self) -> dict[str, Any]:
        if self._fleet is None:
            count = len(self.specs)
            return {"servers": count, "states": {"stopped": count} if count else {}, "problems": {}}
        return self._fleet.summary()

    # ------------------------------------------------------------ life

    def configure(self, specs: Sequence[McpServerSpec]) -> None:
        if self.specs == tuple(specs):
            return
        self.specs = tuple(specs)
        if self._fleet is not None:
            self._fleet.configure(self.specs)

    async def close(self) -> None:
        if self._fleet is not None:
            await self._fleet.close()
