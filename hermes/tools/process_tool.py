"""Process tool: manage a conversation's background commands.

A conversation sees its own processes, also those started before a compression, and no others. `wait` has a maximum
and ends when the turn is stopped. Output is shown in parts; `log` returns the offset of the next part.

Input is judged together with earlier input on the same line, so that a dangerous command cannot be sent in pieces.
Therefore calls of this tool do not run in parallel.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from loguru import logger

from hermes.domain.errors import BadInputError
from hermes.domain.process.process import Chunk, Handle
from hermes.domain.process.process_record import ProcessView
from hermes.domain.turn.tool_call import Gate, Verdict
from hermes.domain.values import dataclass, replace
from hermes.ports.processes import BackgroundProcesses, ProcessOrder
from hermes.processes.child import is_bash, limit_commands
from hermes.processes.command_output import plain_text
from hermes.processes.typed import as_read
from hermes.processes.watch import BETWEEN_S
from hermes.sandbox.network.host_grants import granted_hosts, rule_for
from hermes.sandbox.network.network import SandboxNetwork
from hermes.sandbox.sandbox_plan import PROXY_PORT
from hermes.tools.terminal.background_command import BackgroundCommand
from hermes.tools.tool import Tool, ToolContext, ToolError, ToolResult, tool

_TAIL_BYTES: Final = 4000
_LOG_BYTES: Final = 20_000
_LOG_MAX_BYTES: Final = 40_000
_PATTERNS_MAX: Final = 16
_PATTERN_CHARS: Final = 200
_WATCHED: Final = f" You get a message with output lines that match watch, at most every {BETWEEN_S:g} s."
_SEVERITY: Final = (Verdict.ALLOW, Verdict.ASK, Verdict.BLOCK)

# The command's sandbox already runs when the daemon attaches the proxy, so the command waits for it.
_UNTIL_PROXY: Final = (
    f"for _ in {{1..100}}; do (: <>/dev/tcp/127.0.0.1/{PROXY_PORT}) 2>/dev/null && break; sleep 0.02; done; "
)

Action = Literal["list", "poll", "log", "wait", "kill", "write", "submit", "close"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessToolSettings:
    wait_s: float = 180.0
    wait_max_s: float = 600.0


def background_starter(
    processes: BackgroundProcesses, network: SandboxNetwork | None = None
) -> Callable[[BackgroundCommand], Awaitable[str]]:
    """Return the function that starts the terminal tool's background commands."""

    async def start(asked: BackgroundCommand) -> str:
        if len(asked.watch) > _PATTERNS_MAX or any(not 0 < len(each) <= _PATTERN_CHARS for each in asked.watch):
            raise ToolError(f"watch takes at most {_PATTERNS_MAX} texts of 1 to {_PATTERN_CHARS} characters.")
        try:
            view = await processes.start(
                ProcessOrder(
                    session=asked.session,
                    command=asked.command,
                    argv=_argv(asked),
                    cwd=asked.cwd,
                    environ=asked.environ,
                    pty=asked.pty,
                    box=asked.box and replace(asked.box, granted_hosts=granted_hosts(asked.permitted)),
                    notify=asked.notify,
                    watch=asked.watch,
                    role=asked.role,
                )
            )
        except BadInputError as error:
            raise ToolError(str(error)) from error
        if network is not None and asked.box is not None and asked.box.network:
            await _connect(network, view.id, view.pid, permitted=asked.permitted)
        follow_up = "You get a message when it ends." if asked.notify else "Use the process tool to manage it."
        watched = _WATCHED if asked.watch else ""
        return f"Started in the background as {view.id} (pid {view.pid}). {follow_up}{watched}"

    return start


async def serve_again(network: SandboxNetwork, handles: Sequence[Handle]) -> None:
    """Serve the proxy for sandboxes that were started by an earlier daemon and still run."""
    for handle in handles:
        await _connect(network, handle.id, handle.pid, permitted=frozenset(map(rule_for, handle.hosts)))


async def _connect(network: SandboxNetwork, process: str, monitor: int, *, permitted: frozenset[str]) -> None:
    """Attach the proxy to a background command's sandbox. If this fails, the command runs without a network."""
    try:
        await network.follow_monitor(monitor, permitted=permitted)
    except OSError as error:
        logger.warning("process {}: could not attach the network to its sandbox: {}", process, error)


def _argv(asked: BackgroundCommand) -> tuple[str, ...]:
    bash = is_bash(asked.shell)
    options = ("--noprofile", "--norc") if bash else ()
    limits = f"{{ {limit_commands(asked.limits, bash=bash)} }} 2>/dev/null"
    # The command is an argument of the script, so it cannot change the part that sets the limits.
    wait = _UNTIL_PROXY if bash and asked.box is not None and asked.box.network else ""
    return (asked.shell, *options, "-c", f'{limits}; {wait}eval "$1"', "hermes-background", asked.command)


def process_tool(
    processes: BackgroundProcesses, settings: ProcessToolSettings, decide: Callable[[str, str], Gate]
) -> Tool:
    """Return the tool. `decide` judges a command and its directory: input may go to a shell."""
    actions = _Actions(processes, settings)

    def gate(arguments: Mapping[str, Any], context: ToolContext) -> Gate:  # noqa: ARG001 - as every gate's
        data = arguments.get("data", "")
        if arguments["action"] not in ("write", "submit") or not data.strip():
            return Gate()
        typed = processes.typed(arguments.get("id", "")) + data
        readings = dict.fromkeys((typed, as_read(typed)))  # as a pipe and as a terminal deliver it
        return max((decide(text, "") for text in readings), key=lambda gate: _SEVERITY.index(gate.verdict))

    @tool("process", decide=gate)
    async def process(
        context: ToolContext,
        *,
        action: Annotated[Action, "what to do"],
        id: Annotated[str, "process id; not needed for list"] = "",  # noqa: A002 - the name that models expect
        data: Annotated[str, "text for write and submit"] = "",
        offset: Annotated[int | None, "for log: first byte to read; default: the end of the output"] = None,
        limit: Annotated[int, "for log: number of bytes, maximum 40000"] = _LOG_BYTES,
        timeout: Annotated[float | None, "for wait: seconds"] = None,  # noqa: ASYNC109 - for the model
    ) -> ToolResult:
        """Manage commands that you started with terminal(background=true).

        list: show all processes. poll: show state and last output. log: read output. wait: wait until it ends.
        kill: kill it and its child processes. write: send data to its input. submit: send data and a newline.
        close: close its input. Kill processes that you no longer need.
        """
        try:
            return await actions.run(context, action, id, data=data, offset=offset, limit=limit, timeout_s=timeout)
        except BadInputError as error:
            raise ToolError(str(error)) from error

    return process


class _Actions:
    def __init__(self, processes: BackgroundProcesses, settings: ProcessToolSettings) -> None:
        self._processes = processes
        self._settings = settings

    async def run(
        self,
        context: ToolContext,
        action: Action,
        process: str,
        *,
        data: str,
        offset: int | None,
        limit: int,
        timeout_s: float | None,
    ) -> ToolResult:
        own = await self._processes.listed(context.session)
        if action == "list":
            return ToolResult(text=self._listed(own))
        view = _chosen(own, process)
        match action:
            case "poll":
                return await self._status(view)
            case "log":
                return await self._log(view, offset, limit)
            case "wait":
                return await self._wait(view, timeout_s)
            case "kill":
                return await self._kill(view)
            case "write" | "submit":
                return await self._write(view, data + ("\n" if action == "submit" else ""))
            case "close":
                await self._processes.close_input(view.id)
                return ToolResult(text=f"Closed the input of {view.id}.")

    def _listed(self, views: tuple[ProcessView, ...]) -> str:
        if not views:
            return "This conversation has no background processes."
        return "\n".join(f"{_state(view)}  {view.id}  {self._processes.explain(view)}" for view in views)

    async def _status(self, view: ProcessView) -> ToolResult:
        chunk = await self._tail(view)
        if view.ended_at is None:  # the view may be older than the output
            view = replace(view, output_bytes=max(view.output_bytes, chunk.total))
        return ToolResult(text=f"{view.id}: {self._processes.explain(view)}\n{_shown(chunk)}")

    async def _kill(self, view: ProcessView) -> ToolResult:
        if view.ended_at is not None:
            return ToolResult(text=f"It had already ended.\n{(await self._status(view)).text}")
        return await self._status(await self._processes.kill(view.id, "the agent asked for it", heard=True))

    async def _tail(self, view: ProcessView) -> Chunk:
        try:
            return await self._processes.tail(view.id, _TAIL_BYTES)
        except BadInputError:  # the process is lost and its output gone
            return Chunk(offset=0, data=b"", total=0)

    async def _log(self, view: ProcessView, offset: int | None, limit: int) -> ToolResult:
        if limit < 1 or (offset is not None and offset < 0):
            raise ToolError("limit must be at least 1 and offset at least 0. Without offset, log reads the end.")
        capped = f" (limit was reduced to {_LOG_MAX_BYTES})" if limit > _LOG_MAX_BYTES else ""
        limit = min(limit, _LOG_MAX_BYTES)
        if offset is None:
            return ToolResult(text=_shown(await self._processes.tail(view.id, limit)) + capped)
        chunk = await self._processes.output(view.id, offset, limit)
        if offset > chunk.total:
            return ToolResult(text=f"[no output at offset {offset}: the process has written {chunk.total} bytes]")
        return ToolResult(text=_shown(chunk) + capped)

    async def _wait(self, view: ProcessView, timeout_s: float | None) -> ToolResult:
        most = self._settings.wait_max_s
        limit_s = min(self._settings.wait_s, most) if timeout_s is None else timeout_s
        if not 0 < limit_s <= most:
            raise ToolError(f"timeout must be more than 0 and at most {most:g} seconds.")
        began = time.monotonic()
        view = await self._processes.wait(view.id, limit_s)
        result = await self._status(view)
        if view.ended_at is None:
            return ToolResult(text=f"Still running after {time.monotonic() - began:.0f} s.\n{result.text}")
        return result

    async def _write(self, view: ProcessView, data: str) -> ToolResult:
        if not data:
            raise ToolError("data is empty.")
        raw = data.encode("utf-8", "replace")
        taken = await self._processes.write(view.id, raw)
        if taken < len(raw):
            text = f"{view.id} accepted only {taken} of {len(raw)} bytes: it is not reading. Send the rest later."
            return ToolResult(text=text, ok=False)
        return ToolResult(text=f"Sent {taken} bytes to {view.id}.")


def _chosen(views: tuple[ProcessView, ...], process: str) -> ProcessView:
    if not process:
        raise ToolError("id is missing. Use action=list to see the processes.")
    view = next((view for view in views if view.id == process), None)
    if view is None:
        raise ToolError(
            f"This conversation has no background process {process[:80]!r}. Use action=list to see the processes."
        )
    return view


def _state(view: ProcessView) -> str:
    return "running" if view.ended_at is None else "ended  "


def _shown(chunk: Chunk) -> str:
    """Return the output chunk and its position."""
    if not chunk.total:
        return "[no output]"
    reached = chunk.offset + len(chunk.data)
    text = plain_text(chunk.data, terminal=False).strip("\ufffd").rstrip("\n")
    where = f"[bytes {chunk.offset} to {reached} of {chunk.total}"
    if chunk.kept_from:
        where += f"; bytes before {chunk.kept_from} were deleted"
    return f"{text}\n{where}{']' if reached == chunk.total else f'; continue with offset={reached}]'}".lstrip("\n")
