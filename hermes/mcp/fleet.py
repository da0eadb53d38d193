"""All configured MCP servers: their tools for the agent, their state for people, and changes while the daemon runs.

Making it costs nothing: catalogues are read, and unknown servers are asked for their tools, at the first turn.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loguru import logger

from hermes.domain.errors import BadInputError, HermesError, StorageError
from hermes.domain.mcp import catalogue as catalogues
from hermes.domain.mcp.catalogue import Catalogue, McpTool, Standing
from hermes.domain.mcp.mcp_question import McpQuestion
from hermes.domain.mcp.server_spec import McpAuth, McpServerSpec, TransportKind
from hermes.domain.read.views import ActorView
from hermes.mcp.environment import filled, program, server_environment, server_headers
from hermes.mcp.link_error import LinkFailure, McpLinkError
from hermes.mcp.questions import FactStore, McpQuestions
from hermes.mcp.server import McpServer, sdk_module
from hermes.mcp.server_requests import Complete, ServerRequests
from hermes.mcp.token_file import TokenFile
from hermes.mcp.tools import agent_tools, asks
from hermes.ports.given import Clock
from hermes.ports.mcp_servers.mcp_control import McpServers
from hermes.tools.tool import Tool

if TYPE_CHECKING:
    from hermes.mcp.connection import ConnectionHooks, McpConnection

FACT = "mcp:catalogue:"
LEARN_AT_ONCE = 4  # servers that are asked for their tools at the same time
LEARN_WITHIN_S = 10.0  # a turn waits for unknown servers at most this long

Tell = Callable[[str, str], Awaitable[None]]  # a notice for the owner: its id, and its text


class McpFleet(McpServers):
    def __init__(
        self,
        specs: Iterable[McpServerSpec],
        *,
        facts: FactStore,
        clock: Clock,
        jitter: Callable[[], float],
        environ: Mapping[str, str],
        data_dir: Path,
        complete: Complete,
        announce: Callable[[McpQuestion, str], Awaitable[None]],
        tell: Tell,
    ) -> None:
        self.clock = clock
        self.jitter = jitter
        self.questions = McpQuestions(facts, clock, announce)
        self._offer: Callable[[Sequence[Tool]], None] = lambda _: None
        self._facts = facts
        self._environ = environ
        self._data_dir = data_dir
        self._tell = tell
        self._requests = ServerRequests(self.questions, complete, clock)
        self._servers = {spec.name: McpServer(spec, self) for spec in specs}
        self._loaded = False
        self._loading = asyncio.Lock()
        self._learning: dict[str, asyncio.Task[None]] = {}
        self._gate = asyncio.Semaphore(LEARN_AT_ONCE)
        self._stopping: set[asyncio.Task[None]] = set()
        self._awaited: set[str] = set()  # names of servers that a turn has waited for

    # ------------------------------------------------------------ for turns

    async def prepare(self) -> None:
        """Load the catalogues, and ask servers without one for their tools, for a limited time."""
        if not self._servers:
            return
        await self._load()
        unknown = [server for server in self._servers.values() if self._is_to_be_learned(server)]
        if not unknown:
            return
        tasks = {server.name: self._learn_soon(server) for server in unknown}
        awaited = [task for name, task in tasks.items() if name not in self._awaited]
        self._awaited |= tasks.keys()
        if awaited:
            await asyncio.wait(awaited, timeout=LEARN_WITHIN_S)  # those that take longer come to a later turn

    def _is_to_be_learned(self, server: McpServer) -> bool:
        return server.spec.enabled and not server.is_learned and not server.health.refusal(self.clock())

    def _learn_soon(self, server: McpServer) -> asyncio.Task[None]:
        task = self._learning.get(server.name)
        if task is None or task.done():
            task = asyncio.create_task(self._learn(server), name=f"mcp learn {server.name}")
            self._learning[server.name] = task
        return task

    async def _learn(self, server: McpServer) -> None:
        async with self._gate:
            try:
                await server.learn()
            except McpLinkError as error:
                logger.debug("mcp {}: its tools are not known yet: {}", server.name, error)
            except StorageError as error:
                logger.warning("mcp {}: its tools could not be stored: {}", server.name, error)

    async def _load(self) -> None:
        async with self._loading:
            if self._loaded:
                return
            for server in self._servers.values():
                if server.catalogue is None:
                    server.catalogue = catalogues.decode(await self._facts.fact(FACT + server.name))
            self._loaded = True
            self._offer_all()

    def offer_to(self, offer: Callable[[Sequence[Tool]], None]) -> None:
        """Give the tools of all servers to this function, now and whenever they change."""
        self._offer = offer
        self._offer_all()

    def _offer_all(self) -> None:
        self._offer([tool for server in self._servers.values() for tool in agent_tools(server)])

    # ------------------------------------------------------------ for servers (`Gateway`)

    def connect(self, spec: McpServerSpec, hooks: ConnectionHooks) -> McpConnection:
        module = sdk_module("hermes.mcp.connection")
        command = None
        if spec.transport is TransportKind.STDIO:
            stdio = sdk_module("hermes.mcp.stdio")
            environ = server_environment(spec, self._environ)
            command = stdio.StdioCommand(
                argv=(program(spec, environ), *(filled(each, self._environ) for each in spec.args)),
                environ=environ,
                cwd=str(Path(spec.cwd).expanduser()) if spec.cwd else str(Path.home()),
            )
        connection: McpConnection = module.McpConnection(
            spec, command=command, headers=server_headers(spec, self._environ), auth=self._auth(spec), hooks=hooks
        )
        return connection

    def _auth(self, spec: McpServerSpec) -> Any:
        if spec.auth is not McpAuth.OAUTH:
            return None
        secret = self._environ.get(spec.oauth.client_secret_env, "") if spec.oauth.client_secret_env else ""
        return sdk_module("hermes.mcp.oauth").make_auth(spec, TokenFile(self._data_dir), secret=secret)

    async def sample(self, server: McpServer, params: Any) -> Any:
        return await self._requests.sample(server, params)

    async def elicit(self, server: McpServer, params: Any) -> Any:
        return await self._requests.elicit(server, params)

    async def learned(self, server: McpServer, before: Catalogue | None) -> None:
        catalogue = server.catalogue
        assert catalogue is not None
        if before is not None and before.tools == catalogue.tools and before.approved == catalogue.approved:
            return
        await self._facts.remember(FACT + server.name, catalogues.encode(catalogue))
        self._offer_all()
        if catalogue.waiting:
            await self._tell_waiting(server, catalogue)

    async def _tell_waiting(self, server: McpServer, catalogue: Catalogue) -> None:
        """Tell the owner once about each state of the tools that wait for approval."""
        waiting = catalogue.waiting
        name = f"mcp:{server.name}:{catalogues.digest_of(waiting)}"
        text = (
            f"The MCP server {server.name} has {len(waiting)} tools whose description you have not accepted: "
            f"{', '.join(f'{each.remote} ({catalogue.standing(each)})' for each in waiting[:10])}. "
            "They are withheld. "
            f"/mcp show {server.name} shows them, /mcp approve {server.name} accepts them."
        )
        logger.warning("mcp {}: {} tools wait for approval of their description", server.name, len(waiting))
        try:
            await self._tell(name, text)
        except HermesError as error:
            logger.warning("mcp {}: the owner could not be told: {}", server.name, error)

    # ------------------------------------------------------------ for people (`McpServers`)

    async def listed(self) -> list[dict[str, Any]]:
        await self._load()
        return [self._row(server) for server in self._servers.values()]

    async def shown(self, name: str) -> dict[str, Any]:
        await self._load()
        server = self._server(name)
        catalogue = server.catalogue
        tools = [] if catalogue is None else [_tool_row(server.spec, catalogue, each) for each in catalogue.tools]
        return {**self._row(server), "tools": tools}

    async def tested(self, name: str) -> dict[str, Any]:
        """Start the server whatever failed before, and list its tools."""
        await self._load()
        server = self._server(name)
        if not server.spec.enabled:
            raise BadInputError(f"{name} is disabled in the configuration", param="name")
        await server.stop()
        try:
            await server.learn()
        except McpLinkError as error:
            raise BadInputError(
                f"{name} does not work: {error}", code="login_needed" if error.kind is LinkFailure.LOGIN else "mcp"
            ) from error
        return await self.shown(name)

    async def approve(self, name: str) -> dict[str, Any]:
        await self._load()
        server = self._server(name)
        if server.catalogue is None:
            raise BadInputError(f"the tools of {name} are not known yet; `hermes mcp test {name}` reads them")
        changed = [each.remote for each in server.catalogue.waiting]
        accepted = catalogues.approve(server.catalogue)
        await self._facts.remember(FACT + name, catalogues.encode(accepted))
        server.catalogue = accepted
        self._offer_all()
        logger.info("mcp {}: {} tools approved", name, len(changed))
        return {"name": name, "approved": changed}

    async def stop(self, name: str) -> dict[str, Any]:
        server = self._server(name)
        await server.stop()
        return self._row(server)

    async def open_questions(self) -> list[McpQuestion]:
        return await self.questions.listed()

    async def question(self, name: str) -> McpQuestion:
        return await self.questions.get(name)

    async def answer(self, name: str, text: str | None) -> tuple[McpQuestion, bool]:
        waited = self.questions.is_waiting(name)
        return await self.questions.answer(name, text), waited

    def views(self) -> list[ActorView]:
        return [server.view() for server in self._servers.values()]

    def summary(self) -> dict[str, Any]:
        """Return counts by state, and the problems, for the status."""
        states: dict[str, int] = {}
        for server in self._servers.values():
            states[server.health.state.value] = states.get(server.health.state.value, 0) + 1
        bad = {each.name: each.health.problem for each in self._servers.values() if each.health.problem}
        waiting = {
            each.name: len(each.catalogue.waiting)
            for each in self._servers.values()
            if each.catalogue is not None and each.is_learned and each.catalogue.waiting
        }
        return {"servers": len(self._servers), "states": states, "problems": bad, "waiting_for_approval": waiting}

    def _server(self, name: str) -> McpServer:
        server = self._servers.get(name)
        if server is None:
            known = ", ".join(self._servers) or "none"
            raise BadInputError(
                f"there is no MCP server {name[:40]!r}; configured: {known}", param="name", code="unknown_server"
            )
        return server

    def _row(self, server: McpServer) -> dict[str, Any]:
        catalogue, spec, health = server.catalogue, server.spec, server.health
        is_known = catalogue is not None and server.is_learned
        return {
            "name": server.name,
            "transport": spec.transport.value,
            "address": spec.address,
            "command": shlex.join((spec.command, *spec.args)) if spec.command else "",
            "state": health.state.value,
            "problem": health.problem,
            "retry_in_s": max(0.0, round(health.not_before - self.clock(), 1)) if health.not_before else 0.0,
            "trust": spec.trust.value,
            "role": spec.role.value,
            "tool_count": len(catalogue.offered) if catalogue is not None and is_known else 0,
            "waiting_for_approval": len(catalogue.waiting) if catalogue is not None and is_known else 0,
            "is_learned": is_known,
            "version": catalogue.version if catalogue is not None and is_known else "",
            "pid": server.pid,
            "calls": server.calls,
            "failures": server.failures,
        }

    # ------------------------------------------------------------ life

    def configure(self, specs: Sequence[McpServerSpec]) -> None:
        """Apply a changed configuration. Servers whose definition is the same keep running."""
        kept: dict[str, McpServer] = {}
        gone: list[McpServer] = []
        for spec in specs:
            before = self._servers.get(spec.name)
            if before is not None and before.spec == spec:
                kept[spec.name] = before
            else:
                kept[spec.name] = McpServer(spec, self, None if before is None else before.catalogue)
                self._loaded = self._loaded and before is not None and before.catalogue is not None
                self._awaited.discard(spec.name)
        gone = [server for name, server in self._servers.items() if kept.get(name) is not server]
        self._servers = kept
        for server in gone:
            task = asyncio.create_task(server.close(), name=f"mcp close {server.name}")
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)
        self._offer_all()

    async def close(self) -> None:
        for task in self._learning.values():
            task.cancel()
        if self._learning:
            await asyncio.wait(self._learning.values())
        closing = [asyncio.create_task(server.close()) for server in self._servers.values()]
        if closing or self._stopping:
            await asyncio.wait([*closing, *self._stopping])


def _tool_row(spec: McpServerSpec, catalogue: Catalogue, tool: McpTool) -> dict[str, Any]:
    standing = catalogue.standing(tool)
    return {
        "name": tool.name,
        "remote": tool.remote,
        "standing": standing.value,
        "finding": catalogues.finding(tool) if standing is Standing.SUSPICIOUS else "",
        "asks": asks(spec, tool),
        "read_only": tool.read_only,
        "destructive": tool.destructive,
        "description": tool.description,
    }
