"""A child process in the foreground: its output is taken until it ends, and it does end.

By itself, after its time, when it has become a storm of processes, or when whoever waits for it is cancelled; in all
cases with all that is left of its group. Only a process that left the group can outlive it; nobody waits for that.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from hermes.domain.values import dataclass
from hermes.processes.child import ChildProcess, threads_on_this_machine
from hermes.processes.command_output import CommandOutput, LineFeed

_TERM_GRACE_S: Final = 2.0  # from a polite end to a sure one
_CANCEL_GRACE_S: Final = 0.4  # whoever cancels does not want to wait for a second
_LEFT_GRACE_S: Final = 0.5  # for what outlives the program
_SILENCE_S: Final = 0.5  # after the end, until the output is given up
_ESCAPED_MAX_S: Final = 5.0
_COUNT_EVERY_S: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    code: int = 0
    whole: bool = True  # nobody ended it
    timed_out: bool = False
    notes: tuple[str, ...] = ()


async def run_to_end(
    child: ChildProcess, output: CommandOutput, feed: LineFeed, *, limit_s: float, processes_max: int
) -> Ending:
    pump = asyncio.create_task(_pump(child, output, feed))
    crowded: list[str] = []
    crowd = asyncio.create_task(_watch(child, processes_max, crowded))
    try:
        end = await _waited(child, limit_s)
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
    "a process that left the command's process group still runs and holds its output; "
    "what it writes from now on is lost"
)


async def _pump(child: ChildProcess, output: CommandOutput, feed: LineFeed) -> None:
    while data := await child.read():
        feed.add(data)
        await output.add(data)


async def _watch(child: ChildProcess, processes_max: int, said: list[str]) -> None:
    """Ends what has grown too large, and says so. It is counted only when it can be too large at all."""
    while True:
        await asyncio.sleep(_COUNT_EVERY_S)
        if await asyncio.to_thread(threads_on_this_machine) <= processes_max:
            continue
        count = len(await child.members() or ())
        if count > processes_max:
            said.append(f"killed: the command had {count} processes at a time, more than the {processes_max} allowed")
            await child.stop(0.0)
            return


async def _waited(child: ChildProcess, limit_s: float) -> Ending:
    try:
        async with asyncio.timeout(limit_s):
            code = await child.wait()
    except TimeoutError:
        await child.stop(_TERM_GRACE_S)
        note = f"timed out after {limit_s:g} s: the command and what it had started were ended"
        return Ending(whole=False, timed_out=True, notes=(note,))
    return Ending(code=code, notes=await _clear_up(child))


async def _clear_up(child: ChildProcess) -> tuple[str, ...]:
    """End what outlived the program, after a moment in which it may end by itself."""
    if await child.emptied(within_s=_LEFT_GRACE_S):
        names = child.ended_with_it()
        if not names:
            return ()
    else:
        names = await child.members() or []
        await child.stop(_CANCEL_GRACE_S)
    names = sorted(set(names))
    said = f"the command left processes running ({', '.join(names[:10]) or 'unknown'}); they were ended"
    return (f"{said}: in the foreground nothing outlives its command",)


async def _drained(pump: asyncio.Task[None], output: CommandOutput) -> bool:
    """Whether the output has ended. It is given up when nothing came for a while, and at the latest after a few.

    A disk that is slow to take what came is no silence, and neither is a machine that stood still: the second look
    sees what came in with it.
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
            task.result()  # a fault of ours shall not pass in silence
