"""Hooks as commands: isolation, limits, and what they decide about tool calls."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from hermes.domain.cause.cause import EndCause
from hermes.domain.event.hook import Hook, HookEvent
from hermes.domain.events import PhaseChanged, SessionOpened, TurnBegan
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.session.state import Phase
from hermes.domain.turn.tool_call import Gate, Verdict
from hermes.domain.values import replace
from hermes.ports.hooks import ToolUse
from hermes.services.events.hook_runner import HookRunner
from hermes.services.events.hooks import HookService
from tests.support.waiting import until

S, T = SessionId("s1"), TurnId("t1")
USE = ToolUse(session="s1", turn="t1", call="c1", tool="terminal", arguments={"command": "rm x"}, platform="api")


def runner(folder: Path) -> HookRunner:
    environ = {**os.environ, "SECRET_TOKEN": "hunter2", "HOOK_TOKEN": "t0ken"}
    return HookRunner(
        environ=environ,
        home=str(folder),
        redact=lambda text: text.replace("hunter2", "***"),
        start_folder=str(folder),
    )


def service(folder: Path, *hooks: Hook, at_once: int = 4, max_waiting: int = 100) -> HookService:
    return HookService(hooks, runner=runner(folder), clock=lambda: 5.0, at_once=at_once, max_waiting=max_waiting)


def pre(command: str, **fields: Any) -> Hook:
    return Hook(name="check", on=("pre_tool_call",), command=command, **fields)


async def test_lifecycle_hook_gets_json_and_no_secret(tmp_path: Path) -> None:
    hook = Hook(name="log", on=("session:*", "agent:start"), command="cat >> seen; env >> variables")
    hooks = service(tmp_path, hook, at_once=1)
    hooks.note(SessionOpened(session=S, platform="api", reason="hunter2 came"))
    hooks.note(TurnBegan(session=S, turn=T, attempt=1))
    hooks.note(PhaseChanged(session=S, phase=Phase.ENDED, reason="idle", cause=EndCause.RESET))
    await hooks.close(within_s=10)
    seen = [json.loads(line) for line in (tmp_path / "seen").read_text().splitlines()]
    assert [each["event"] for each in seen] == ["session:start", "agent:start", "session:reset", "session:end"]
    assert seen[0]["hook_event_name"] == "SessionStart"
    assert (seen[0]["session_id"], seen[0]["reason"], seen[0]["at"]) == ("s1", "*** came", 5.0)
    variables = (tmp_path / "variables").read_text()
    assert "hunter2" not in variables
    assert "HERMES_HOOK_EVENT=session:start" in variables
    assert hooks.status()["run"] == 4


async def test_hook_that_hangs_or_fails_is_counted_and_shown(tmp_path: Path) -> None:
    hang = Hook(name="hang", on=("daemon:start",), command="sleep 60", timeout_s=0.2)
    fail = Hook(name="fail", on=("daemon:start",), command="echo broken >&2; exit 3")
    missing = Hook(name="missing", on=("daemon:start",), argv=("/no/such/program",))
    hooks = service(tmp_path, hang, fail, missing)
    hooks.fire(HookEvent.DAEMON_START, "", {})
    await hooks.close(within_s=10)
    status = hooks.status()
    assert (status["run"], status["failed"], status["dropped"]) == (3, 3, 0)
    problems = {each.partition(":")[0]: each for each in status["problems"]}
    assert "did not answer within 0.2 s" in problems["hang"]
    assert "exit code 3: broken" in problems["fail"]
    assert "could not be started" in problems["missing"]


async def test_queue_is_bounded_and_counts_what_it_drops(tmp_path: Path) -> None:
    hook = Hook(name="slow", on=("agent:start",), command="sleep 60", timeout_s=60)
    hooks = service(tmp_path, hook, at_once=1, max_waiting=2)
    for _ in range(5):
        hooks.note(TurnBegan(session=S, turn=T, attempt=1))
    assert (hooks.status()["running"], hooks.status()["waiting"], hooks.status()["dropped"]) == (1, 2, 2)
    await hooks.close()
    assert hooks.status()["dropped"] == 4


async def test_pre_hook_blocks_by_exit_code_and_later_hooks_are_not_asked(tmp_path: Path) -> None:
    hooks = service(tmp_path, pre("echo 'not here' >&2; exit 2"), pre("touch asked"))
    gate = await hooks.before(USE, Gate())
    assert (gate.verdict, gate.reason) == (Verdict.BLOCK, "hook check: not here")
    assert not (tmp_path / "asked").exists()


async def test_pre_hook_sees_the_call_and_adds_context(tmp_path: Path) -> None:
    script = (
        "import json,sys; call=json.load(sys.stdin); "
        "print(json.dumps({'context': call['tool_name'] + ' ' + call['tool_input']['command']}))"
    )
    hook = Hook(name="note", on=("pre_tool_call",), argv=(sys.executable, "-c", script))
    gate = await service(tmp_path, hook).before(USE, Gate())
    assert (gate.verdict, gate.context) == (Verdict.ALLOW, "terminal rm x")


async def test_pre_hook_that_fails_blocks_if_it_is_configured_so(tmp_path: Path) -> None:
    assert (await service(tmp_path, pre("exit 1")).before(USE, Gate())).verdict is Verdict.ALLOW
    closed = pre("sleep 60", closed=True, timeout_s=0.1)
    assert (await service(tmp_path, closed).before(USE, Gate())).verdict is Verdict.BLOCK


async def test_hook_of_other_tools_is_not_asked(tmp_path: Path) -> None:
    hooks = service(tmp_path, pre("exit 2", matcher="write_.*"))
    assert not hooks.concern("pre_tool_call", "terminal")
    assert await hooks.before(USE, Gate()) == Gate()
    assert (await hooks.before(replace(USE, tool="write_file"), Gate())).verdict is Verdict.BLOCK


async def test_post_hook_adds_to_the_result(tmp_path: Path) -> None:
    hook = Hook(name="lint", on=("post_tool_call",), command='echo \'{"context": "2 lint errors"}\'')
    assert await service(tmp_path, hook).after(USE, "written", ok=True) == "2 lint errors"


async def test_output_beyond_the_limit_is_dropped_and_nothing_is_left_running(tmp_path: Path) -> None:
    hook = Hook(name="loud", on=(), command="head -c 3000000 /dev/zero; sleep 300 & echo $! > child")
    output, problem = await runner(tmp_path).output(replace(hook, timeout_s=0.7))
    assert problem == "did not end within 0.7 s"
    assert output == ""
    child = int((tmp_path / "child").read_text())
    await until(lambda: is_gone(child))


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


async def test_handler_of_a_folder_runs_with_the_event(tmp_path: Path) -> None:
    from hermes.config.events.hook_entry import read_hook_folders

    folder = tmp_path / "greet"
    folder.mkdir(mode=0o755)
    (folder / "HOOK.yaml").write_text("name: greet\nevents: ['pre_tool_call']\n")
    (folder / "handler.py").write_text(
        "async def handle(event_type, context):\n    return {'context': event_type + ' ' + context['tool_name']}\n"
    )
    hooks, problems = await asyncio.to_thread(read_hook_folders, tmp_path)
    assert problems == []
    gate = await service(tmp_path, *hooks).before(USE, Gate())
    assert gate.context == "pre_tool_call terminal"
