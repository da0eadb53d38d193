"""Open connection to one MCP server, on the official SDK. Imports the SDK: import it when a server is used.

The SDK's context managers must be entered and left by one task, so each connection has a task of its own. Calls run
in the tasks of their callers. Every foreign exception becomes a McpLinkError here.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, TypeVar

import anyio
import httpx2
import jsonschema  # noqa: F401 - the SDK imports it late, which would block the event loop
import mcp_types
from loguru import logger
from mcp import Client, MCPError
from mcp.client.auth import OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from hermes import __version__
from hermes.domain.mcp.server_spec import McpServerSpec, TransportKind
from hermes.domain.values import dataclass
from hermes.mcp.http import http_transport
from hermes.mcp.link_error import LinkFailure, McpLinkError
from hermes.mcp.stdio import StdioChild, StdioCommand, stdio_transport

T = TypeVar("T")
_PAGES_MOST = 50
_PING_S = 15.0
_REFUSED_CODES = (mcp_types.CONNECTION_CLOSED, mcp_types.REQUEST_TIMEOUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionHooks:
    """What a connection calls. `ended` may be called before it is open."""

    sample: Callable[[Any], Awaitable[Any]] | None
    elicit: Callable[[Any], Awaitable[Any]] | None
    tools_changed: Callable[[], None]
    ended: Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a server offers."""

    tools: tuple[Any, ...]
    resources: bool
    prompts: bool
    version: str


class McpConnection:
    def __init__(
        self,
        spec: McpServerSpec,
        *,
        command: StdioCommand | None,
        headers: Mapping[str, str],
        auth: Any,
        hooks: ConnectionHooks,
    ) -> None:
        self.spec = spec
        self._command = command
        self._headers = headers
        self._auth = auth
        self._hooks = hooks
        self._child = StdioChild(self._note_end)
        self._client: Client | None = None
        self._leave = asyncio.Event()
        self._opened: asyncio.Future[None]  # made by `open`, on the loop
        self._task: asyncio.Task[None] | None = None
        self._ended = False

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def is_open(self) -> bool:
        return self._client is not None and not self._ended

    # ------------------------------------------------------------ life

    async def open(self) -> None:
        """Start or reach the server and shake hands. Raises McpLinkError."""
        self._opened = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(), name=f"mcp {self.spec.name}")
        try:
            await asyncio.shield(self._opened)
        except asyncio.CancelledError:
            await self.close()
            raise

    async def close(self) -> None:
        self._ended = True  # from here on, its end is no news
        self._leave.set()
        if self._task is not None:
            if not self._opened.done():
                self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self.spec.connect_timeout_s):
                    self._client = await stack.enter_async_context(self._make_client())
                await stack.enter_async_context(self._following())
                if not self._opened.done():
                    self._opened.set_result(None)
                await self._leave.wait()
        # The outermost edge of a connection: its opener or its server hears of every end.
        except BaseException as error:
            self._report(error)
            if isinstance(error, asyncio.CancelledError) and not self._ended:
                raise
        finally:
            self._client = None

    def _report(self, error: BaseException) -> None:
        problem = self._failure(error)
        if not self._opened.done():
            self._opened.set_exception(problem)
            self._opened.exception()  # its opener may have been cancelled
        else:
            self._note_end(str(problem))

    def _note_end(self, problem: str) -> None:
        if not self._ended and self._opened.done():
            self._ended = True
            self._leave.set()
            self._hooks.ended(problem)

    def _make_client(self) -> Client:
        async def sampled(_context: Any, params: Any) -> Any:
            assert self._hooks.sample is not None
            return await self._hooks.sample(params)

        async def elicited(_context: Any, params: Any) -> Any:
            assert self._hooks.elicit is not None
            return await self._hooks.elicit(params)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            return Client(
                self._transport(),
                sampling_callback=None if self._hooks.sample is None else sampled,
                elicitation_callback=None if self._hooks.elicit is None else elicited,
                message_handler=self._heard,
                client_info=mcp_types.Implementation(name="hermes", version=__version__),
                cache=None,
            )

    def _transport(self) -> Any:
        if self.spec.transport is TransportKind.STDIO:
            assert self._command is not None
            return stdio_transport(self._command, self._child)
        return http_transport(self.spec, self._headers, self._auth)

    async def _heard(self, message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._hooks.tools_changed()

    @asynccontextmanager
    async def _following(self) -> AsyncIterator[None]:
        """Subscribe to changes of the tool list, where the protocol version needs a subscription for it."""
        client = self._ready()
        tools = client.server_capabilities.tools
        if client.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
            yield
            return
        following = asyncio.create_task(self._follow(client), name=f"mcp follow {self.spec.name}")
        try:
            yield
        finally:
            following.cancel()
            await asyncio.wait([following])

    async def _follow(self, client: Client) -> None:
        try:
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self._hooks.tools_changed()
        except Exception as error:  # noqa: BLE001 - without it, a change is noticed at the next start
            logger.debug("mcp {}: no subscription to its tool list: {!r}", self.spec.name, error)

    # ------------------------------------------------------------ requests

    async def listing(self) -> Listing:
        """Return everything that the server offers. Raises McpLinkError."""

        async def read() -> Listing:
            client = self._ready()
            capabilities, info = client.server_capabilities, client.server_info
            tools: list[Any] = []
            cursor = None
            for _ in range(_PAGES_MOST if capabilities.tools is not None else 0):
                page = await client.list_tools(cursor=cursor)
                tools += page.tools
                cursor = page.next_cursor
                if not cursor:
                    break
            version = "" if info is None else f"{info.name} {info.version}"[:120]
            return Listing(
                tools=tuple(tools),
                resources=capabilities.resources is not None and await _has_resources(client),
                prompts=capabilities.prompts is not None and bool((await client.list_prompts()).prompts),
                version=version,
            )

        return await self._asked(read, self.spec.connect_timeout_s)

    async def request(self, ask: Callable[[Client], Awaitable[T]], deadline: Callable[[asyncio.Timeout], None]) -> T:
        """Send a request. `deadline` gets the timeout, which it may move while a person is asked."""

        async def sent() -> T:
            return await ask(self._ready())

        return await self._asked(sent, self.spec.timeout_s, deadline)

    async def ping(self) -> None:
        """Check that the server answers. Raises McpLinkError."""

        async def sent() -> None:
            client = self._ready()
            if client.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", MCPDeprecationWarning)
                    await client.session.send_ping()
            else:
                await client.session.discover()

        await self._asked(sent, _PING_S)

    async def _asked(
        self,
        sent: Callable[[], Awaitable[T]],
        within_s: float,
        deadline: Callable[[asyncio.Timeout], None] = lambda _: None,
    ) -> T:
        try:
            async with asyncio.timeout(within_s) as timeout:
                deadline(timeout)
                return await sent()
        except McpLinkError:
            raise
        except Exception as error:
            if isinstance(error, TimeoutError):
                raise McpLinkError(LinkFailure.TIMEOUT, f"it did not answer within {within_s:g} s") from None
            failure = self._failure(error)
            if failure.kind is LinkFailure.LOST:
                self._note_end(str(failure))
            raise failure from error

    def _ready(self) -> Client:
        if self._client is None or self._ended:
            raise McpLinkError(LinkFailure.LOST, self._child.described if self._child.problem else "it was stopped")
        return self._client

    # ------------------------------------------------------------ errors

    def _failure(self, error: BaseException) -> McpLinkError:
        """Translate any error of the SDK and of the libraries below it."""
        found = _innermost(error)
        if isinstance(found, McpLinkError):
            return found
        if isinstance(found, OAuthFlowError | OAuthRegistrationError | OAuthTokenError):
            return McpLinkError(LinkFailure.LOGIN, f"it needs a login: run `hermes mcp login {self.spec.name}`")
        if isinstance(found, httpx2.HTTPStatusError) and found.response.status_code in (401, 403):
            return McpLinkError(
                LinkFailure.LOGIN,
                f"it answered {found.response.status_code}: check its headers, or run "
                f"`hermes mcp login {self.spec.name}`",
            )
        return self._plain_failure(found)

    def _plain_failure(self, error: BaseException) -> McpLinkError:
        was_open = self._opened.done() and not self._opened.cancelled() and self._opened.exception() is None
        lost = LinkFailure.LOST if was_open else LinkFailure.START
        if self._child.problem:
            return McpLinkError(lost, self._child.described)
        match error:
            case TimeoutError():
                return McpLinkError(lost, f"it did not answer within {self.spec.connect_timeout_s:g} s")
            case FileNotFoundError() | PermissionError() | NotADirectoryError():
                return McpLinkError(LinkFailure.SETUP, f"{error.filename or self.spec.command}: {error.strerror}")
            case MCPError() if error.code in _REFUSED_CODES:
                return McpLinkError(lost, error.message[:300])
            case MCPError():
                return McpLinkError(LinkFailure.REFUSED, f"{error.message[:2000]} (code {error.code})")
            case ValidationError():
                return McpLinkError(LinkFailure.CONTRACT, "its answer does not follow the protocol")
            case RuntimeError():  # the SDK's check of structured content
                return McpLinkError(LinkFailure.CONTRACT, str(error)[:500])
            case httpx2.HTTPError() | OSError() | anyio.ClosedResourceError() | anyio.BrokenResourceError():
                return McpLinkError(lost, f"it cannot be reached ({_words(error)})")
            case _:
                return McpLinkError(lost, f"unexpected {_words(error)}")


async def _has_resources(client: Client) -> bool:
    """Return whether the server has any: many declare the capability and have none."""
    if (await client.list_resources()).resources:
        return True
    try:
        return bool((await client.list_resource_templates()).resource_templates)
    except MCPError:  # many servers do not have the method
        return False


def _words(error: BaseException) -> str:
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _innermost(error: BaseException) -> BaseException:
    """Return the first leaf of exception groups, which the SDK's task groups raise."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


async def settled(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait for it."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.wait([task])
