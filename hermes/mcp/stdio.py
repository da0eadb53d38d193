"""Transport to an MCP server that is a child process: JSON lines over its standard input and output.

The SDK's own transport keeps an unfinished line of any length, and its children outlive a killed daemon. Here a line
has a maximum length, messages have a maximum rate, and a watcher in the child's process group ends the group when the
daemon dies. Standard error is read and only its end is kept. Imports the SDK: import it when a server is used.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import anyio
from loguru import logger
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from hermes.domain.values import dataclass

MAX_LINE: Final = 4 << 20  # bytes of one message
STDERR_KEPT: Final = 2_000  # bytes
_PARSED_INLINE: Final = 256 << 10  # a longer message is parsed in a thread
_BURST: Final = 1_000.0  # messages
_PER_S: Final = 200.0
_NAP_S: Final = 0.05
_FLUSH_S: Final = 0.5
_GRACE_S: Final = 2.0
_POLL_S: Final = 0.01

# $1 is the number of a pipe that only the daemon can write. When the daemon dies, the watcher ends the process group.
_GUARD: Final = """
watched=$1; shift
{ trap '' HUP INT QUIT TERM; read -r _ <"/dev/fd/$watched"; kill -s TERM 0; sleep 2; kill -s KILL 0; } \
  >/dev/null 2>&1 </dev/null &
exec "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioCommand:
    argv: Sequence[str]
    environ: Mapping[str, str]
    cwd: str = ""


class StdioChild:
    """The process of a server, and what was seen of it."""

    def __init__(self, on_end: Callable[[str], None]) -> None:
        self.problem = ""  # why it cannot go on
        self.errors = b""  # end of its standard error
        self.dropped = 0  # lines that were not messages
        self.pid = 0
        self._on_end = on_end

    def end(self, problem: str) -> None:
        if not self.problem:
            self.problem = problem
            self._on_end(self.described)

    @property
    def described(self) -> str:
        """Return the problem with the last line of standard error."""
        last = self.errors.decode("utf-8", "replace").strip().rpartition("\n")[2].strip()
        return f"{self.problem}: {last[:300]}" if last else self.problem


@asynccontextmanager
async def stdio_transport(command: StdioCommand, child: StdioChild) -> AsyncGenerator[TransportStreams, None]:
    """Start the process and connect to it. Raises OSError."""
    process, lifeline = await _spawn(command)
    child.pid = process.pid
    incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = (
        asyncio.create_task(_read(process, incoming, child), name=f"mcp read {process.pid}"),
        asyncio.create_task(_write(process, outgoing, incoming), name=f"mcp write {process.pid}"),
        asyncio.create_task(_read_errors(process, child), name=f"mcp stderr {process.pid}"),
    )
    try:
        yield read_stream, write_stream
    finally:
        stopping = asyncio.ensure_future(_stop(process, lifeline, tasks, write_stream))
        try:
            await asyncio.shield(stopping)
        except asyncio.CancelledError:
            await asyncio.wait([stopping])
            raise
        finally:
            for stream in (read_stream, write_stream, incoming, outgoing):
                stream.close()


async def _spawn(command: StdioCommand) -> tuple[Process, int]:
    watched, lifeline = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", _GUARD, "mcp", str(watched), *command.argv),
            env=command.environ,
            cwd=command.cwd or None,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
            pass_fds=(watched,),
            limit=MAX_LINE,
        )
    except BaseException:
        os.close(lifeline)
        raise
    finally:
        os.close(watched)
    return process, lifeline


async def _read(process: Process, incoming: Any, child: StdioChild) -> None:
    assert process.stdout is not None
    loop = asyncio.get_running_loop()
    left, at = _BURST, loop.time()
    try:
        while line := await _line(process.stdout, child):
            message = await _parsed(line)
            if message is None:
                child.dropped += 1
                if child.dropped == 1:
                    logger.warning(
                        "mcp: process {} writes lines that are not messages; they are dropped", process.pid
                    )
                continue
            now = loop.time()
            left, at = min(_BURST, left + (now - at) * _PER_S) - 1, now
            if left < 0:  # a flood: the process waits until its pipe is read again
                await asyncio.sleep(_NAP_S)
            await incoming.send(message)
    except (anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
        pass
    finally:
        code = process.returncode
        child.end(f"its process ended with exit code {code}" if code is not None else "it closed its output")
        incoming.close()


async def _line(stream: asyncio.StreamReader, child: StdioChild) -> bytes:
    """Return the next line; empty at the end."""
    try:
        return await stream.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError:
        child.end(f"it sent a message of more than {MAX_LINE >> 20} MB")
        return b""


async def _parsed(line: bytes) -> SessionMessage | None:
    if not line.strip():
        return None
    try:
        if len(line) <= _PARSED_INLINE:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        return SessionMessage(await asyncio.to_thread(jsonrpc_message_adapter.validate_json, line, by_name=False))
    except (ValueError, RecursionError):
        return None


async def _write(process: Process, outgoing: Any, incoming: Any) -> None:
    assert process.stdin is not None
    try:
        async for message in outgoing:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(f"{text}\n".encode("utf-8", "replace"))
            await process.stdin.drain()
    except (OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        incoming.close()  # requests must not wait for a process that reads nothing


async def _read_errors(process: Process, child: StdioChild) -> None:
    assert process.stderr is not None
    while part := await process.stderr.read(65_536):
        child.errors = (child.errors + part)[-STDERR_KEPT:]


async def _stop(process: Process, lifeline: int, tasks: Sequence[asyncio.Task[None]], write_stream: Any) -> None:
    """Close its input, wait, then end the whole process group."""
    reader, writer, errors = tasks
    write_stream.close()
    await asyncio.wait([writer], timeout=_FLUSH_S)
    for task in (reader, writer):
        task.cancel()
    await asyncio.wait([reader, writer])
    if process.stdin is not None:
        process.stdin.close()
    try:
        if not await _ended(process, _GRACE_S):
            _signal(process, signal.SIGTERM)
            await _ended(process, _GRACE_S)
    finally:
        _signal(process, signal.SIGKILL)  # the watcher, too
        os.close(lifeline)
    errors.cancel()
    await asyncio.wait([errors])
    with suppress(TimeoutError):
        async with asyncio.timeout(_GRACE_S):
            await process.wait()
    transport: Any = getattr(process, "_transport", None)
    if transport is not None:  # a process that left the group may hold the pipes
        transport.close()


async def _ended(process: Process, within_s: float) -> bool:
    """Return whether the process ends in time. `Process.wait` would also wait for the end of its pipes."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within_s
    while process.returncode is None and loop.time() < deadline:
        await _drain(process)
        await asyncio.sleep(_POLL_S)
    return process.returncode is not None


async def _drain(process: Process) -> None:
    """Drop waiting output: a process that blocks on a full pipe does not see the end of its input."""
    if process.stdout is not None:
        with suppress(TimeoutError, ValueError):
            async with asyncio.timeout(_POLL_S):
                await process.stdout.read(1 << 20)


def _signal(process: Process, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
