"""Run a child process in the foreground and collect its output until it ends.

It ends by itself, on timeout, on too many processes, or when the waiting task is cancelled. Its process group always
ends with it. Only a process that left the group can outlive it, and that one is not waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from hermes.domain.values import dataclass
from hermes.processes.child import ChildProcess, threads_on_this_machine
from hermes.processes.command_output import CommandOutput, LineFeed

_TERM_GRACE_S: Final = 2.0  # from SIGTERM to SIGKILL
_CANCEL_GRACE_S: Final = 0.4  # the same, after a cancellation
_LEFT_GRACE_S: Final = 0.5  # for processes that outlive the program
_SILENCE_S: Final = 0.5  # without output after the end, until reading stops
_ESCAPED_MAX_S: Final = 5.0
_COUNT_EVERY_S: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    code: int = 0
    whole: bool = True  # it ended by itself
    timed_out: bool = False
    notes: tuple[str, ...] = ()


async def run_to_end(
    child: ChildProcess,
    output: CommandOutput,
    feed: LineFeed,
    *,
    limit_s: float,
    processes_max: int,
    timed: Callable[[asyncio.Timeout], None] = lambda _: None,
) -> Ending:
    """`timed` gets the time limit, which can be moved."""
    pump = asyncio.create_task(_pump(child, output, feed))
    crowded: list[str] = []
    crowd = asyncio.create_task(_watch(child, processes_max, crowded))
    try:
        end = await _waited(child, limit_s, timed)
        drained = await _drained(pump, output)
        if crowded:
            return Ending(whole=False, notes=tuple(crowded))
        return end if drained else Ending(code=end.code, whole=end.whole, notes=(*end.notes, _ESCAPED))
    except asyncio.CancelledError:
        await child.stop(_CANCEL_GRACE_S)
        raise
    finally:
        await _finished(pump, crowd)


_ESCAPED: Final = (
    "a process that left the command's process group is still running with its output open; "
    "anything it writes now is lost"
)


async def _pump(child: ChildProcess, output: CommandOutput, feed: LineFeed) -> None:
    while data := await child.read():
        feed.add(data)
        await output.add(data)


async def _watch(child: ChildProcess, processes_max: int, notes: list[str]) -> None:
    """Stop a command with too many processes and add a note. Count only if the whole machine has that many."""
    while True:
        await asyncio.sleep(_COUNT_EVERY_S)
        if await asyncio.to_thread(threads_on_this_machine) <= processes_max:
            continue
        count = len(await child.members() or ())
        if count > processes_max:
            notes.append(f"killed: the command had {count} processes, more than the allowed {processes_max}")
            await child.stop(0.0)
            return


async def _waited(child: ChildProcess, limit_s: float, timed: Callable[[asyncio.Timeout], None]) -> Ending:
    try:
        async with asyncio.timeout(limit_s) as limit:
            timed(limit)
            code = await child.wait()
    except TimeoutError:
        await child.stop(_TERM_GRACE_S)
        note = f"timed out after {limit_s:g} s: the command and its processes were killed"
        return Ending(whole=False, timed_out=True, notes=(note,))
    return Ending(code=code, notes=await _clear_up(child))


async def _clear_up(child: ChildProcess) -> tuple[str, ...]:
    """Stop the processes that outlived the program, after a short grace time."""
    if await child.emptied(within_s=_LEFT_GRACE_S):
        names = child.ended_with_it()
        if not names:
            return ()
    else:
        names = await child.members() or []
        await child.stop(_CANCEL_GRACE_S)
    names = sorted(set(names))
    left = ", ".join(names[:10]) or "unknown"
    return (f"the command left processes running ({left}); they were killed, as always in the foreground",)


async def _drained(pump: asyncio.Task[None], output: CommandOutput) -> bool:
    """Return whether the output has ended. Stop reading after two silent samples, or after a few seconds.

    A slow disk does not count as silence. Two samples are needed in case the whole machine was suspended.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _ESCAPED_MAX_S
    silent = 0
    while not pump.done() and silent < 2 and loop.time() < deadline:
        seen = output.total
        await asyncio.wait((pump,), timeout=_SILENCE_S / 2)
        silent = silent + 1 if output.total == seen and not output.storing else 0
    return pump.done()


async def _finished(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()  # raise an unexpected error
