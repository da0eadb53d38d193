"""Cost of the sandbox: a command that does nothing, and a file read, with and without it.

The real tools alternate, so that a slow phase of the machine affects all of them. It measures as the current user: a
root daemon switches to another user for each command, which costs more (`as_root` tells which). Without a working
sandbox there are no figures.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from hermes.domain.ids import SessionId, TurnId
from hermes.domain.turn.tool_call import Gate
from hermes.sandbox.network.network import SandboxNetwork
from hermes.sandbox.sandbox import Sandbox, open_sandbox
from hermes.sandbox.sandbox_plan import SandboxRules
from hermes.tools.files.boxed_files import BoxedFiles
from hermes.tools.files.file_tools import file_tools
from hermes.tools.terminal.terminal import terminal_tool
from hermes.tools.terminal.terminal_settings import TerminalSettings
from hermes.tools.tool import Tool, ToolContext
from hermes.tools.workplace import Workplace

COMMANDS = 100
READS = 300
WARM_UP = 5
MS = 1000.0


def run() -> dict[str, float]:
    sandbox = open_sandbox(SandboxRules(), home=str(Path.home()), enabled=True)
    if not sandbox.works:
        print(f"sandbox: not measured, {sandbox.probe.cause.value} {sandbox.probe.detail}", file=sys.stderr)
        return {}
    with tempfile.TemporaryDirectory(prefix="hermes-bench-", dir=Path.cwd()) as folder:
        return asyncio.run(_measure(sandbox, Path(folder).resolve()))


async def _measure(sandbox: Sandbox, home: Path) -> dict[str, float]:
    workplace = Workplace(default_cwd="", home=str(Path.home()), hermes_home=str(home))
    network, boxed = SandboxNetwork(frozenset()), BoxedFiles(sandbox, workplace)
    try:
        commands = await _in_turns(
            COMMANDS,
            {
                "plain": _command(_terminal(workplace), _context(home, "plain")),
                "sandbox": _command(_terminal(workplace, sandbox), _context(home, "sandbox")),
                "network": _command(_terminal(workplace, sandbox, network), _context(home, "network")),
            },
        )
        reads = await _in_turns(
            READS,
            {
                "direct": _read(_read_tool(workplace), workplace, _context(home, "direct")),
                "worker": _read(_read_tool(workplace, boxed), workplace, _context(home, "worker")),
            },
        )
    finally:
        await boxed.close()
        await network.close()
    return {
        **{f"{name}_p50_ms": MS * statistics.median(taken) for name, taken in commands.items()},
        **{f"{name}_p90_ms": MS * statistics.quantiles(taken, n=10)[-1] for name, taken in commands.items()},
        **{f"read_{name}_p50_ms": MS * statistics.median(taken) for name, taken in reads.items()},
        "over_plain_ms": MS * _difference(commands["sandbox"], commands["plain"]),
        "network_over_plain_ms": MS * _difference(commands["network"], commands["plain"]),
        "to_plain": statistics.median(commands["sandbox"]) / statistics.median(commands["plain"]),
        "network_to_plain": statistics.median(commands["network"]) / statistics.median(commands["plain"]),
        "read_over_direct_ms": MS * _difference(reads["worker"], reads["direct"]),
        "as_root": float(os.geteuid() == 0),
    }


def _difference(one: list[float], other: list[float]) -> float:
    """Return the median of the differences per round, whose two values were measured one after the other."""
    return statistics.median(a - b for a, b in zip(one, other, strict=True))


def _context(home: Path, name: str) -> ToolContext:
    folder = home / "work" / name
    folder.mkdir(mode=0o700, parents=True)
    return ToolContext(session=SessionId(name), turn=TurnId("t"), call="call", platform="cli", folder=folder)


def _terminal(workplace: Workplace, sandbox: Sandbox | None = None, network: SandboxNetwork | None = None) -> Tool:
    settings = TerminalSettings(environ=os.environ, work_of=workplace.work_of)
    return terminal_tool(settings, lambda *_, **__: Gate(), None, sandbox, network)


def _command(tool: Tool, context: ToolContext) -> Callable[[], Awaitable[None]]:
    async def once() -> None:
        result = await tool.run(context, command=":")
        assert not isinstance(result, str)
        assert result.ok, result.text

    return once


def _read_tool(workplace: Workplace, boxed: BoxedFiles | None = None) -> Tool:
    tools = file_tools(workplace, lambda *_: Gate(), boxed)
    return next(tool for tool in tools if tool.name == "read_file")


def _read(tool: Tool, workplace: Workplace, context: ToolContext) -> Callable[[], Awaitable[None]]:
    note = Path(workplace.work_of(context.folder), "note.txt")
    note.write_text("what the tool reads\n" * 100)
    note.chmod(0o644)

    async def once() -> None:
        assert "what the tool reads" in str(await tool.run(context, path="note.txt"))

    return once


async def _in_turns(rounds: int, ways: Mapping[str, Callable[[], Awaitable[None]]]) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for at in range(WARM_UP + rounds):
        for name, once in ways.items():
            began = time.perf_counter()
            await once()
            if at >= WARM_UP:
                taken[name].append(time.perf_counter() - began)
    return taken


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
