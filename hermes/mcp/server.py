"""One configured MCP server: its catalogue, and the supervised connection that is open only while it is used.

It starts with the first call. It is stopped when nobody used it for a while, and a failed start or a lost connection
makes the next start wait, park or probe as `hermes/domain/mcp/link_health.py` decides. A call is never repeated.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from loguru import logger

from hermes.domain.mcp import catalogue as catalogues
from hermes.domain.mcp import link_health
from hermes.domain.mcp.catalogue import Catalogue, McpTool, ToolKind
from hermes.domain.mcp.link_health import LinkHealth, McpState
from hermes.domain.mcp.server_spec import McpServerSpec
from hermes.domain.read.views import ActorView
from hermes.domain.values import dataclass, replace
from hermes.mcp.link_error import LinkFailure, McpLinkError
from hermes.mcp.listing import tools_of
from hermes.mcp.result import ResultFiles, call_text, prompt_text, resource_text
from hermes.ports.given import Clock
from hermes.tools.tool import ToolContext, ToolError, ToolResult

if TYPE_CHECKING:
    from hermes.mcp.connection import ConnectionHooks, McpConnection

_RELIST_S = 0.3  # after a change of the list, for further ones
_RELIST_EVERY_S = 10.0
_PROGRESS_S = 0.5
_SHORT_NAP_S = 0.05
_SETTLE_S = 1.0  # wait for the end of a pause that is nearly over

CALLED: ContextVar[ActiveCall | None] = ContextVar("mcp_call", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveCall:
    """A call in flight, for questions and model calls that the server asks for during it."""

    context: ToolContext
    tool: str
    pause: Callable[[bool], None]  # stops its clock while a person is asked


class Gateway(Protocol):
    """What a server needs of its surroundings."""

    clock: Clock
    jitter: Callable[[], float]

    def connect(self, spec: McpServerSpec, hooks: ConnectionHooks) -> McpConnection:
        """Make a connection, not open yet. Blocks: it may import the SDK. Raises McpLinkError."""

    async def sample(self, server: McpServer, params: Any) -> Any: ...
    async def elicit(self, server: McpServer, params: Any) -> Any: ...
    async def learned(self, server: McpServer, before: Catalogue | None) -> None:
        """Store the new catalogue of a server and offer its tools."""


class McpServer:
    def __init__(self, spec: McpServerSpec, gateway: Gateway, catalogue: Catalogue | None = None) -> None:
        self.spec = spec
        self.catalogue = catalogue
        self.health = LinkHealth(state=McpState.STOPPED if spec.enabled else McpState.DISABLED)
        self.active: dict[int, ActiveCall] = {}
        self.calls = self.failures = 0
        self._gateway = gateway
        self._connection: McpConnection | None = None
        self._opening = asyncio.Lock()
        self._closed = False
        self._minder: asyncio.Task[None] | None = None
        self._relisting: asyncio.Task[None] | None = None
        self._used_at = self._relisted_at = self._opened_at = 0.0
        self._slowest_s = 0.0

    # ------------------------------------------------------------ views

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def is_learned(self) -> bool:
        return self.catalogue is not None and self.catalogue.fingerprint == self.spec.fingerprint

    @property
    def pid(self) -> int:
        return 0 if self._connection is None else self._connection.pid

    def view(self) -> ActorView:
        now = self._gateway.clock()
        return ActorView(
            kind="mcp",
            name=self.name,
            state=self.health.state.value,
            mailbox=len(self.active),
            oldest_s=0.0,
            handled=self.calls,
            slowest_s=self._slowest_s,
            age_s=max(0.0, now - self._opened_at) if self._connection is not None else 0.0,
            last_error=self.health.problem,
        )

    # ------------------------------------------------------------ calls

    async def call(self, tool: McpTool, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Run a tool. Raises ToolError with what the model should know."""
        current = self._offered(tool)
        try:
            connection = await self._connected()
        except McpLinkError as error:
            raise ToolError(
                f"{tool.name} was not run: the MCP server {self.name} is not available: {error}."
            ) from None
        current = self._offered(current)  # the start may have shown another description
        began = self._gateway.clock()
        try:
            result = await self._run(connection, current, arguments, context)
        except McpLinkError as error:
            raise ToolError(self._failed(tool, error)) from None
        finally:
            self._used_at = self._gateway.clock()
            self._slowest_s = max(self._slowest_s, self._used_at - began)
        self.health = link_health.call_succeeded(self.health)
        return result

    def _offered(self, tool: McpTool) -> McpTool:
        """Return the tool as the server has it now. Raises ToolError if the owner has not accepted that."""
        found = None if self.catalogue is None else self.catalogue
        now = None if found is None else next((each for each in found.offered if each.remote == tool.remote), None)
        if now is None or now.digest != tool.digest:
            raise ToolError(
                f"{tool.name} was not run: the server {self.name} has changed or removed it, and its owner has not "
                f"accepted that. `hermes mcp list` shows it, `hermes mcp approve {self.name}` accepts it."
            )
        return now

    async def _run(
        self, connection: McpConnection, tool: McpTool, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolResult:
        self.calls += 1
        number = self.calls
        timeouts: list[asyncio.Timeout] = []

        def pause(asked: bool) -> None:
            now = asyncio.get_running_loop().time()
            for each in timeouts:
                each.reschedule(None if asked else now + self.spec.timeout_s)

        call = ActiveCall(context=context, tool=tool.remote, pause=pause)
        self.active[number] = call
        token = CALLED.set(call)
        try:
            files = ResultFiles(context.folder, context.call)
            ask = _request_of(tool, arguments, _Progress(context.progress, self._gateway.clock))
            result = await connection.request(ask, timeouts.append)
            return await asyncio.to_thread(_result_of, tool, result, files)
        finally:
            CALLED.reset(token)
            del self.active[number]

    def _failed(self, tool: McpTool, error: McpLinkError) -> str:
        """Note a failed call, and return the text for the model."""
        self.failures += 1
        may_have = "It may have done part of its work."
        match error.kind:
            case LinkFailure.REFUSED:
                return f"{tool.name} failed: {error}"
            case LinkFailure.CONTRACT:
                return f"{tool.name} ran, but its answer was refused: {error}"
            case LinkFailure.TIMEOUT:
                self._note_failed_call(str(error))
                return f"{tool.name} was cancelled: {error}. {may_have}"
            case _:
                self._note_failed_call(str(error))
                return f"{tool.name} failed: the connection to the MCP server {self.name} ended: {error}. {may_have}"

    def _note_failed_call(self, problem: str) -> None:
        before = self.health.state
        self.health = link_health.call_failed(self.health, problem, self._gateway.clock())
        if self.health.state is McpState.OPEN and before is not McpState.OPEN:
            logger.warning("mcp {}: circuit opened: {}", self.name, self.health.problem)

    # ------------------------------------------------------------ connection

    async def _connected(self) -> McpConnection:
        """Return the open connection; open it if needed. Raises McpLinkError."""
        async with self._opening:
            self._used_at = self._gateway.clock()
            if self._closed:
                raise McpLinkError(LinkFailure.SETUP, "it was removed from the configuration, or Hermes stops")
            if self.health.state is McpState.OPEN and (refusal := self.health.refusal(self._used_at)):
                raise McpLinkError(LinkFailure.START, refusal)
            if self._connection is not None and self._connection.is_open:
                return self._connection
            await self._forget_connection()
            await self._settle()
            return await self._open()

    async def _settle(self) -> None:
        wait_s = self.health.not_before - self._gateway.clock()
        if self.health.state is McpState.WAITING and 0 < wait_s <= _SETTLE_S:
            await asyncio.sleep(wait_s)
        if refusal := self.health.refusal(self._gateway.clock()):
            raise McpLinkError(LinkFailure.START, refusal)

    async def _open(self) -> McpConnection:
        before = self.health
        self.health = replace(before, state=McpState.STARTING)
        connection: McpConnection | None = None
        try:
            connection = await asyncio.to_thread(self._gateway.connect, self.spec, await self._hooks())
            await connection.open()
            self._connection = connection
            await self._list(connection)
        except McpLinkError as error:
            await self._not_opened(connection, before, error)
            raise
        except BaseException:
            self.health, self._connection = before, None
            if connection is not None:
                await connection.close()
            raise
        self.health = link_health.started(before)
        self._opened_at = self._gateway.clock()
        self._minder = asyncio.create_task(self._mind(connection), name=f"mcp mind {self.name}")
        logger.info("mcp {}: started", self.name)
        return connection

    async def _not_opened(self, connection: McpConnection | None, before: LinkHealth, error: McpLinkError) -> None:
        self._connection = None
        if connection is not None:
            await connection.close()
        if error.kind is LinkFailure.LOGIN:
            self.health = link_health.login_needed(before, str(error))
        else:
            final = error.kind is LinkFailure.SETUP
            now, jitter = self._gateway.clock(), self._gateway.jitter()
            self.health = link_health.start_failed(before, str(error), now, jitter, final=final)
        logger.warning("mcp {}: not started ({}): {}", self.name, self.health.state, error)

    async def _hooks(self) -> ConnectionHooks:
        module = await asyncio.to_thread(sdk_module, "hermes.mcp.connection")

        async def sample(params: Any) -> Any:
            return await self._gateway.sample(self, params)

        async def elicit(params: Any) -> Any:
            return await self._gateway.elicit(self, params)

        hooks: ConnectionHooks = module.ConnectionHooks(
            sample=sample if self.spec.sampling.enabled else None,
            elicit=elicit if self.spec.elicitation else None,
            tools_changed=self._note_change,
            ended=self._note_end,
        )
        return hooks

    def _note_end(self, problem: str) -> None:
        """Note that an open connection ended by itself."""
        if self._closed or self.health.state is not McpState.RUNNING:
            return
        self.health = link_health.died(self.health, problem, self._gateway.clock(), self._gateway.jitter())
        logger.warning("mcp {}: connection ended: {}", self.name, problem)

    async def _mind(self, connection: McpConnection) -> None:
        """Check an open connection from time to time, and stop it when nobody uses it."""
        spec = self.spec
        checked_at = self._gateway.clock()
        while connection.is_open:
            now = self._gateway.clock()
            idle_s = spec.idle_s - (now - self._used_at)
            if idle_s <= 0 and not self.active:
                break
            due_s = spec.keepalive_s - (now - checked_at)
            if due_s <= 0:
                checked_at = now
                try:
                    await connection.ping()
                except McpLinkError as error:
                    self._note_end(f"it no longer answers: {error}")
                    await connection.close()
                    return
            else:
                await asyncio.sleep(max(_SHORT_NAP_S, min(due_s, idle_s if idle_s > 0 else spec.idle_s)))
        if connection.is_open:
            logger.info("mcp {}: stopped, because it was idle", self.name)
            self.health = link_health.stopped(self.health)
            self._connection = None
            await connection.close()

    async def _forget_connection(self) -> None:
        connection, self._connection = self._connection, None
        minder, self._minder = self._minder, None
        if minder is not None and minder is not asyncio.current_task():
            minder.cancel()
            await asyncio.wait([minder])
        if connection is not None:
            await connection.close()

    # ------------------------------------------------------------ catalogue

    async def learn(self) -> Catalogue:
        """Read the tools of the server. One that was not running is stopped again. Raises McpLinkError."""
        was_open = self._connection is not None and self._connection.is_open
        connection = await self._connected()
        if was_open:
            await self._list(connection)
        elif not self.active:
            async with self._opening:
                await self._forget_connection()
                self.health = link_health.stopped(link_health.call_succeeded(self.health))
        assert self.catalogue is not None
        return self.catalogue

    async def _list(self, connection: McpConnection) -> None:
        listing = await connection.listing()
        before = self.catalogue
        self.catalogue = catalogues.learned(
            before,
            server=self.name,
            fingerprint=self.spec.fingerprint,
            tools=tools_of(self.spec, listing),
            now=self._gateway.clock(),
            version=listing.version,
        )
        await self._gateway.learned(self, before)

    def _note_change(self) -> None:
        """List the tools again soon. A server that changes them all the time is listed rarely."""
        if self._relisting is None or self._relisting.done():
            self._relisting = asyncio.create_task(self._relist(), name=f"mcp relist {self.name}")

    async def _relist(self) -> None:
        since_s = self._gateway.clock() - self._relisted_at
        await asyncio.sleep(_RELIST_S if since_s >= _RELIST_EVERY_S else _RELIST_EVERY_S - since_s)
        self._relisted_at = self._gateway.clock()
        connection = self._connection
        if connection is None or not connection.is_open:
            return
        try:
            await self._list(connection)
        except McpLinkError as error:
            logger.warning("mcp {}: could not list its tools again: {}", self.name, error)

    # ------------------------------------------------------------ stop

    async def stop(self) -> None:
        """Stop the connection. The next call starts it again, whatever failed before."""
        async with self._opening:
            await self._forget_connection()
            if self.health.state is not McpState.DISABLED:
                self.health = LinkHealth()

    async def close(self) -> None:
        """Stop for good."""
        self._closed = True
        if self._relisting is not None:
            self._relisting.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([self._relisting])
        async with self._opening:
            await self._forget_connection()


class _Progress:
    """Progress of a call for the person, not more often than people can read."""

    def __init__(self, show: Callable[[str], None], clock: Clock) -> None:
        self._show = show
        self._clock = clock
        self._shown_at = float("-inf")

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        now = self._clock()
        if now - self._shown_at < _PROGRESS_S:
            return
        self._shown_at = now
        share = f"{progress:g} of {total:g}" if total else f"{progress:g}"
        self._show(f"{share}: {message[:300]}" if message else share)


def _request_of(tool: McpTool, arguments: Mapping[str, Any], progress: _Progress) -> Callable[[Any], Awaitable[Any]]:
    match tool.kind:
        case ToolKind.TOOL:
            return lambda client: client.call_tool(tool.remote, dict(arguments), progress_callback=progress)
        case ToolKind.LIST_RESOURCES:
            return lambda client: _resources(client, arguments.get("cursor"))
        case ToolKind.READ_RESOURCE:
            return lambda client: client.read_resource(str(arguments["uri"]))
        case ToolKind.LIST_PROMPTS:
            return lambda client: client.list_prompts(cursor=arguments.get("cursor"))
        case ToolKind.GET_PROMPT:
            given = {str(name): str(value) for name, value in (arguments.get("arguments") or {}).items()}
            return lambda client: client.get_prompt(str(arguments["name"]), given)


async def _resources(client: Any, cursor: str | None) -> tuple[Any, Any]:
    """Return a page of resources, and with the first one the templates."""
    page = await client.list_resources(cursor=cursor)
    if cursor:
        return page, ()
    try:
        return page, (await client.list_resource_templates()).resource_templates
    except Exception:  # noqa: BLE001 - many servers do not have the method
        return page, ()


def _result_of(tool: McpTool, result: Any, files: ResultFiles) -> ToolResult:
    """Return a result for the model. Blocks: it may write files."""
    match tool.kind:
        case ToolKind.TOOL:
            return ToolResult(text=call_text(result, files) or "(no content)", ok=not result.is_error)
        case ToolKind.LIST_RESOURCES:
            page, templates = result
            lines = [_listed(each.uri, each) for each in page.resources]
            lines += [_listed(each.uri_template, each) for each in templates]
            return ToolResult(text=_page(lines, page.next_cursor))
        case ToolKind.READ_RESOURCE:
            return ToolResult(text=resource_text(result, files))
        case ToolKind.LIST_PROMPTS:
            return ToolResult(
                text=_page([_listed(_signature(each), each) for each in result.prompts], result.next_cursor)
            )
        case ToolKind.GET_PROMPT:
            return ToolResult(text=prompt_text(result, files))


def _listed(what: object, item: Any) -> str:
    about = " ".join((item.description or item.title or "").split())
    return f"{what}: {about}" if about else str(what)


def _signature(prompt: Any) -> str:
    arguments = ", ".join(each.name if each.required else f"[{each.name}]" for each in prompt.arguments or ())
    return f"{prompt.name}({arguments})"


def _page(lines: list[str], cursor: str | None) -> str:
    return "\n".join([*lines, *([f"More with the cursor {cursor}"] if cursor else [])]) or "(none)"


def sdk_module(name: str) -> Any:
    """Import a module that needs the MCP SDK. Blocks for about a second. Raises McpLinkError."""
    from hermes.system.extra import install_line  # noqa: PLC0415 - for the error alone

    try:
        return importlib.import_module(name)
    except ImportError as error:
        if (error.name or "").partition(".")[0] in ("mcp", "mcp_types", "httpx2", "anyio", "pydantic", "jsonschema"):
            raise McpLinkError(
                LinkFailure.SETUP, f"the MCP SDK is not installed; run `{install_line('mcp')}` and `hermes restart`"
            ) from error
        raise
