"""The process tool alone, over processes that do what they are told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermes.domain.errors import BadInputError
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.process.process import Chunk, Handle
from hermes.domain.process.process_record import ProcessView
from hermes.domain.turn.tool_call import Gate, Verdict
from hermes.ports.processes import ProcessOrder
from hermes.processes.child import ChildLimits
from hermes.processes.typed import unfinished
from hermes.sandbox.network.network import SandboxNetwork
from hermes.shell_policy.policy import decide
from hermes.tools.process_tool import ProcessToolSettings, background_starter, process_tool, serve_again
from hermes.tools.terminal.background_command import BackgroundCommand
from hermes.tools.terminal.command_output import OutputLimits
from hermes.tools.tool import ToolError, ToolResult
from hermes.tools.toolbox import Toolbox
from tests.tools.workbench import a_context

RUNNING = ProcessView(
    id="proc_1",
    session=SessionId("s"),
    command="make all",
    pid=7,
    started_at=0.0,
    heartbeat_at=0.0,
    active_at=0.0,
)


class FakeProcesses:
    def __init__(self) -> None:
        self.all: dict[str, ProcessView] = {RUNNING.id: RUNNING}
        self.out = b""
        self.kept_from = 0
        self.sent = b""
        self.line = b""
        self.takes = 10**9
        self.refusal = ""
        self.did: list[str] = []
        self.orders: list[ProcessOrder] = []
        self.ended = asyncio.Event()
        self.waited: list[float] = []

    def views(self, root: SessionId | None = None) -> tuple[ProcessView, ...]:
        return tuple(self.all.values())

    async def listed(self, session: SessionId) -> tuple[ProcessView, ...]:
        return tuple(view for view in self.all.values() if view.session == session)

    def blocks(self, view: ProcessView) -> str:
        return ""

    def explain(self, view: ProcessView) -> str:
        return f"{view.command} is explained."

    async def start(self, order: ProcessOrder) -> ProcessView:
        if self.refusal:
            raise BadInputError(self.refusal)
        self.orders.append(order)
        return RUNNING

    async def output(self, process: str, offset: int, limit: int) -> Chunk:
        offset = min(max(offset, self.kept_from), len(self.out))
        data = self.out[offset : offset + limit]
        return Chunk(offset=offset, data=data, total=len(self.out), kept_from=self.kept_from)

    async def tail(self, process: str, limit: int) -> Chunk:
        return await self.output(process, max(0, len(self.out) - limit), limit)

    async def write(self, process: str, data: bytes) -> int:
        self.sent += data[: self.takes]
        self.line = unfinished(self.line, data[: self.takes])
        return len(data[: self.takes])

    def typed(self, process: str) -> str:
        return self.line.decode()

    async def close_input(self, process: str) -> None:
        self.did.append(f"close {process}")

    async def wait(self, process: str, timeout_s: float) -> ProcessView:
        self.waited.append(timeout_s)
        try:
            async with asyncio.timeout(timeout_s):
                await self.ended.wait()
        except TimeoutError:
            return self.all[process]
        finally:
            self.did.append("waited")
        return replace(self.all[process], ended_at=1.0, exit_code=0)

    async def kill(self, process: str, why: str, *, heard: bool = False) -> ProcessView:
        self.did.append(f"kill {process} {heard}")
        return replace(self.all[process], ended_at=1.0, signal=15)


class Bench:
    def __init__(self, folder: Path) -> None:
        self.processes = FakeProcesses()
        settings = ProcessToolSettings(wait_s=5.0, wait_max_s=20.0)
        self.toolbox = Toolbox(
            (process_tool(self.processes, settings, _gate),),
            toolsets={"default": ["process"]},
            limits=OutputLimits(),
        )
        self.context = a_context(folder)

    async def call(self, action: str, **arguments: Any) -> ToolResult:
        proposal = self.gate(action, **arguments)
        return await self.toolbox.run("process", proposal.arguments, self.context)

    def gate(self, action: str, **arguments: Any) -> Any:
        given = json.dumps({"action": action, "id": RUNNING.id, **arguments})
        proposal = self.toolbox.propose("process", given, self.context)
        assert not proposal.problem, proposal.problem
        return proposal


def _gate(command: str, cwd: str) -> Gate:
    return decide(command, cwd=cwd or "/srv", home="/home/ann", deny=(), mode="manual", granted=())


@pytest.fixture
async def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_each_action_does_what_it_says(bench: Bench) -> None:
    bench.processes.out = b"line one\nline two\n"
    assert "running  proc_1  make all is explained." in (await bench.call("list")).text
    assert "line two" in (await bench.call("poll")).text
    shown = await bench.call("log", offset=0, limit=9)
    assert shown.text == "line one\n[bytes 0 to 9 of 18; continue with offset=9]"
    assert "Sent 3 bytes" in (await bench.call("write", data="abc")).text
    assert "Sent 4 bytes" in (await bench.call("submit", data="def")).text
    await bench.call("kill")
    await bench.call("close")
    assert bench.processes.sent == b"abcdef\n"
    assert bench.processes.did == ["kill proc_1 True", "close proc_1"]


async def test_a_log_says_what_it_does_not_show(bench: Bench) -> None:
    bench.processes.out = b"line one\nline two\n"
    assert "no output at offset 2000" in (await bench.call("log", offset=2000)).text
    assert "offset at least 0" in (await bench.call("log", offset=-1)).text
    assert (await bench.call("log", limit=50_000)).text.endswith("of 18] (limit was reduced to 40000)")
    bench.processes.kept_from = 9
    assert "[bytes 9 to 18 of 18; bytes before 9 were deleted]" in (await bench.call("log", offset=0)).text


async def test_an_ended_process_is_not_killed_again(bench: Bench) -> None:
    bench.processes.all[RUNNING.id] = replace(RUNNING, ended_at=1.0, exit_code=0)
    assert (await bench.call("kill")).text.startswith("It had already ended.\nproc_1: ")
    assert bench.processes.did == []


async def test_another_conversations_process_is_not_there(bench: Bench) -> None:
    bench.processes.all[RUNNING.id] = replace(RUNNING, session=SessionId("other"))
    for action in ("poll", "log", "wait", "kill", "close"):
        result = await bench.call(action)
        assert not result.ok
        assert "has no background process" in result.text
    assert bench.processes.did == []


async def test_what_is_missing_or_empty_is_said(bench: Bench) -> None:
    assert "id is missing" in (await bench.call("poll", id="")).text
    assert "data is empty" in (await bench.call("write", data="")).text
    assert "at most 20 seconds" in (await bench.call("wait", timeout=21)).text
    bench.processes.takes = 2
    result = await bench.call("write", data="abc")
    assert not result.ok
    assert "accepted only 2 of 3 bytes" in result.text


async def test_a_wait_is_bounded_and_says_when_it_was_for_nothing(bench: Bench) -> None:
    assert "Still running after 0 s" in (await bench.call("wait", timeout=0.01)).text
    bench.processes.ended.set()
    assert "Still running" not in (await bench.call("wait")).text
    assert bench.processes.waited == [0.01, 5.0]


async def test_a_stop_during_a_wait_ends_the_wait_and_not_the_process(bench: Bench) -> None:
    waiting = asyncio.create_task(bench.call("wait"))
    while not bench.processes.waited:  # noqa: ASYNC110
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert bench.processes.did == ["waited"]


@pytest.mark.parametrize(
    "pieces",
    [
        ("rm -rf /\n",),
        ("rm -r", "f /\n"),
        ("r", "m", " -rf ", "/"),
        ("echo ok\nrm -rf \\\n", "/\n"),
        ("rm -rX", "\x7ff /\n"),
        ("echo ok\r", "rm -rf /\r"),
        ("echo fine", "\x15rm -rf /\r"),
    ],
)
async def test_a_dangerous_line_does_not_pass_in_pieces(bench: Bench, pieces: tuple[str, ...]) -> None:
    for piece in pieces[:-1]:
        assert bench.gate("write", data=piece).gate.verdict is not Verdict.BLOCK
        await bench.call("write", data=piece)
    assert bench.gate("write", data=pieces[-1]).gate.verdict is Verdict.BLOCK
    assert bench.gate("submit", data=pieces[-1].rstrip("\n")).gate.verdict is Verdict.BLOCK


async def test_a_finished_line_is_not_held_against_the_next(bench: Bench) -> None:
    await bench.call("submit", data="grep rm -rf")
    assert bench.gate("write", data="/").gate.verdict is Verdict.ALLOW
    assert bench.gate("submit", data="").gate.verdict is Verdict.ALLOW
    assert bench.gate("poll").gate.verdict is Verdict.ALLOW


async def test_pieces_are_sent_one_after_the_other(bench: Bench) -> None:
    """Two at once would each be judged without the other."""
    assert not bench.gate("write", data="rm").parallel


async def test_the_starter_says_what_runs_and_refuses_too_many_words_to_watch_for(tmp_path: Path) -> None:
    processes = FakeProcesses()
    start = background_starter(processes)
    asked = BackgroundCommand(
        session=SessionId("s"),
        turn=TurnId("t"),
        call="c",
        folder=tmp_path,
        command="make all",
        cwd="/",
        environ={},
        pty=False,
        limits=ChildLimits(),
        notify=True,
    )
    assert "proc_1 (pid 7). You get a message" in await start(asked)
    assert processes.orders[0].argv[-1] == "make all"
    assert "output lines that match watch, at most every 15 s" in await start(replace(asked, watch=("x",)))
    with pytest.raises(ToolError, match="at most 16 texts"):
        await start(replace(asked, watch=("x",) * 17))
    processes.refusal = "too many run"
    with pytest.raises(ToolError, match="too many run"):
        await start(asked)


async def test_sandboxes_of_an_earlier_daemon_keep_their_hosts() -> None:
    handle = Handle(
        id="proc_1",
        folder="/x",
        pid=7,
        started_ticks=1,
        shim_pid=6,
        shim_started_ticks=1,
        boot_id="",
        started_at=0,
        command_hash="",
        terminal=False,
        segment_bytes=1,
        network=True,
        hosts=("a.example",),
    )
    served: list[tuple[int, frozenset[str]]] = []

    class Network(SandboxNetwork):
        async def follow_monitor(self, monitor: int, *, permitted: Iterable[str] = ()) -> None:
            served.append((monitor, frozenset(permitted)))
            raise ProcessLookupError  # it ended meanwhile: the others are served all the same

    await serve_again(Network(frozenset()), (handle, replace(handle, pid=8, hosts=())))
    assert served == [(7, frozenset({"network:a.example"})), (8, frozenset())]
