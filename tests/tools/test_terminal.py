"""The terminal tool, with real shells and real processes."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import stat
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import psutil
import pytest

from hermes.domain.ids import SessionId, TurnId
from hermes.domain.turn.tool_call import Effect, Gate, Verdict
from hermes.processes.child import ChildLimits
from hermes.sandbox.sandbox import Sandbox
from hermes.tools.terminal.background_command import BackgroundCommand
from hermes.tools.terminal.terminal import terminal_tool
from hermes.tools.terminal.terminal_settings import TerminalSettings
from hermes.tools.tool import Tool, ToolContext, ToolError, ToolResult
from hermes.tools.toolbox import Toolbox
from tests.sandbox.boxes import working_sandbox
from tests.support.waiting import until

CANARY = "canary-5f1d"
ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/", "LANG": "C.UTF-8"}


class TerminalHarness:
    """One conversation, and a tool that can be made anew as a restarted daemon would."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.shown: list[tuple[float, str]] = []
        self.settings: dict[str, Any] = {"environ": ENVIRON, "work_of": lambda *_: str(root)}
        self.sandbox: Sandbox | None = None
        self.background: Callable[[BackgroundCommand], Any] | None = None
        self.asked: list[tuple[str, str]] = []

    def tool(self) -> Tool:
        return terminal_tool(TerminalSettings(**self.settings), self.decide, self.background, self.sandbox)

    def decide(self, command: str, cwd: str, *, work: str, inside: bool, conversation_directory: bool) -> Gate:
        self.asked.append((command, cwd))
        return Gate(verdict=Verdict.ASK)

    def context(self, session: str = "one", call: str = "call_1") -> ToolContext:
        return ToolContext(
            session=SessionId(session),
            turn=TurnId("turn"),
            call=call,
            platform="test",
            folder=self.root / "folders" / session,
            progress=lambda text: self.shown.append((time.monotonic(), text)),
        )

    async def run(self, command: str, *, session: str = "one", **arguments: Any) -> ToolResult:
        result = await self.tool().run(self.context(session), command=command, **arguments)
        assert isinstance(result, ToolResult)
        return result

    async def text(self, command: str, **arguments: Any) -> str:
        return (await self.run(command, **arguments)).text

    def stored(self, session: str = "one") -> Any:
        return json.loads((self.root / "folders" / session / "shell.json").read_text())


def is_left(child: psutil.Process) -> bool:
    try:
        return child.status() != psutil.STATUS_ZOMBIE and not is_other_tests_helper(child)
    except psutil.NoSuchProcess:  # collected meanwhile
        return False


def is_other_tests_helper(child: psutil.Process) -> bool:
    return "resource_tracker" in " ".join(child.cmdline())


@pytest.fixture(params=["plain", "sandbox"])
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[TerminalHarness]:
    """Every test runs with and without a sandbox, so that both behave the same."""
    made = TerminalHarness(tmp_path.resolve())
    if request.param == "sandbox":
        made.sandbox = working_sandbox()
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    yield made
    assert not [each for each in psutil.Process().children() if is_left(each)]
    assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors + 1  # the loop's own come and go
    assert not list(tmp_path.glob("folders/*/.shell*"))


def running(mark: str) -> list[int]:
    """Living processes with this on their command line, but for shells that were merely told of it."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = process.info["cmdline"] or []
        if mark in line and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


class Awake:
    """Time as this process lived it: what it slept through because the machine stood still adds nothing."""

    def __init__(self) -> None:
        self.s = 0.0

    async def __aenter__(self) -> Self:
        self._ticking = asyncio.create_task(self._tick())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ticking.cancel()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(0.01)
            self.s += 0.01


# --- results


async def test_a_command_gives_its_output_and_its_exit_code(world: TerminalHarness) -> None:
    result = await world.run("echo out; echo err >&2; echo out again")
    assert result.text == "out\nerr\nout again\n[exit code 0]"
    assert result.ok


async def test_a_failing_command_says_its_code(world: TerminalHarness) -> None:
    assert await world.text("exit 3") == "(no output)\n[exit code 3]"
    assert not (await world.run("false")).ok
    assert "[exit code 127]" in await world.text("no-such-program-here")
    assert "[exit code 2]" in await world.text("if then")


async def test_a_death_by_signal_is_named(world: TerminalHarness) -> None:
    text = await world.text("sh -c 'kill -SEGV $$'")
    assert "exit code 139 (SIGSEGV)" in text


async def test_lines_of_an_error_are_those_of_the_command(world: TerminalHarness) -> None:
    assert "line 3: nothing-like-this" in await world.text("true\ntrue\nnothing-like-this")


async def test_the_command_sees_no_arguments_and_nothing_of_the_prelude(world: TerminalHarness) -> None:
    assert (await world.text("set -x; echo $# $0")).startswith("++ echo 0 bash\n0 bash\n[exit")


async def test_a_here_document_works_to_the_last_line(world: TerminalHarness) -> None:
    assert await world.text("cat <<END\nhello\nEND") == "hello\n[exit code 0]"


async def test_there_is_nothing_to_read(world: TerminalHarness) -> None:
    assert await world.text("cat; read x; echo $?", timeout=20) == "1\n[exit code 0]"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"command": "  "}, "empty"),
        ({"command": "echo \0"}, "NUL"),
        ({"command": "echo \ud800"}, "valid text"),
        ({"command": "#" * 200_000}, "write_file"),
        ({"command": "true", "timeout": 601}, "at most 600 seconds, not 601. Split the work"),
        ({"command": "true", "timeout": 0}, "more than 0"),
        ({"command": "true", "workdir": "no/such"}, "not a directory"),
        ({"command": "true", "background": True}, "not available"),
        ({"command": "true", "notify": True}, "need background=true"),
        ({"command": "true", "watch": ["x"]}, "need background=true"),
    ],
)
async def test_what_cannot_be_run_is_refused_with_advice(world: TerminalHarness, arguments: Any, says: str) -> None:
    with pytest.raises(ToolError, match=says):
        await world.tool().run(world.context(), **arguments)


def test_it_is_a_tool_with_effects_that_runs_alone(world: TerminalHarness) -> None:
    made = world.tool()
    assert (made.name, made.effect, made.parallel, made.available()) == ("terminal", Effect.EFFECT, False, "")
    assert made.parameters["required"] == ["command"]
    assert "default 180, maximum 600" in made.parameters["properties"]["timeout"]["description"]


# --- what is kept


async def test_directory_and_variables_are_kept_for_the_next_command_and_the_next_daemon(
    world: TerminalHarness,
) -> None:
    await world.run("mkdir 'a dir'; cd 'a dir'; export GREETING='good\nday'; unset LANG; hidden=1")
    text = await world.text('pwd; echo "$GREETING"; echo "${LANG-none} ${hidden-none}"; cd - >/dev/null; pwd')
    assert text == f"{world.root}/a dir\ngood\nday\nnone none\n{world.root}\n[exit code 0]"
    assert await world.text("pwd") == f"{world.root}\n[exit code 0]"


async def test_the_state_is_a_private_file_with_only_what_changed(world: TerminalHarness) -> None:
    await world.run("umask 0; export A=1; unset LANG; cd /usr")
    file = world.root / "folders" / "one" / "shell.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    stored = world.stored()
    assert stored["cwd"] == "/usr"
    assert {name: stored["env"][name] for name in ("A", "LANG")} == {"A": "1", "LANG": None}
    assert set(stored["env"]) <= {"A", "LANG", "OLDPWD"}


@pytest.mark.parametrize(
    "ending",
    [
        "exit 3",
        "set -e; false",
        "trap 'echo bye' EXIT; exit 4",
        "trap 'cd /; exit 5' EXIT",
        "f() { exit 6; }; f",
        "set -u; echo $nothing_of_this_name",
        "(exit 7)",
        "printf() { :; }; env() { :; }; pwd() { :; }",
        "PATH=/nowhere; set -fCa; IFS=/",
        "exec >/dev/null 2>&1",
        "if then",
    ],
)
async def test_the_state_is_kept_however_the_command_ends(world: TerminalHarness, ending: str) -> None:
    await world.run(f"cd /usr; export MARK=here\n{ending}")
    assert world.stored()["cwd"] == "/usr"
    assert world.stored()["env"]["MARK"] == "here"
    assert not [name for name in world.stored()["env"] if name.startswith("__hermes")]


async def test_a_subshell_does_not_leave_its_state(world: TerminalHarness) -> None:
    await world.run("(cd /usr; export A=1; exit 0); cd /usr | cat; $(cd /usr; exit); true & wait")
    assert world.stored()["cwd"] == str(world.root)
    assert "A" not in world.stored()["env"]


async def test_exported_functions_are_kept(world: TerminalHarness) -> None:
    await world.run("greet() { echo hello $1; }; export -f greet")
    assert await world.text("greet you") == "hello you\n[exit code 0]"


async def test_values_that_are_not_utf8_are_kept(world: TerminalHarness) -> None:
    await world.run("export RAW=$'\\xff\\xfe'")
    assert await world.text('printf %s "$RAW" | od -An -tx1') == " ff fe\n[exit code 0]"


async def test_a_killed_shell_changes_nothing_and_says_so(world: TerminalHarness) -> None:
    await world.run("export A=1")
    assert "the previous ones are kept" in await world.text("export A=2; kill -KILL $$")
    assert "were not saved" in await world.text("export A=3; sleep 100", timeout=0.3)
    assert await world.text("echo $A") == "1\n[exit code 0]"


async def test_a_deleted_directory_falls_back_to_the_nearest_and_says_so(world: TerminalHarness) -> None:
    await world.run("mkdir -p a/b/c; cd a/b/c")
    shutil.rmtree(world.root / "a" / "b")
    text = await world.text("pwd")
    assert text.startswith(f"{world.root}/a\n[directory {world.root}/a/b/c no longer exists")
    assert await world.text("pwd") == f"{world.root}/a\n[exit code 0]"


async def test_a_damaged_state_is_a_fresh_shell_and_said(world: TerminalHarness) -> None:
    await world.run("cd /usr; export A=1")
    (world.root / "folders" / "one" / "shell.json").write_text('{"cwd": 5')
    assert "started a fresh shell" in await world.text("pwd")
    assert await world.text("pwd") == f"{world.root}\n[exit code 0]"


async def test_a_workdir_is_for_one_command_only(world: TerminalHarness) -> None:
    await world.run("mkdir sub")
    assert (await world.text("pwd; export A=1", workdir="sub")).startswith(f"{world.root}/sub\n")
    home = "/" if world.sandbox is None else "/home/agent"
    assert (await world.text("pwd", workdir="~")).startswith(f"{home}\n")
    assert await world.text("pwd; echo $A") == f"{world.root}\n1\n[exit code 0]"


async def test_conversations_share_nothing_even_at_the_same_time(world: TerminalHarness) -> None:
    made = world.tool()

    async def talk(name: str) -> str:
        for command in (f"mkdir {name}; cd {name}; export WHO={name}", "sleep 0.05"):
            await made.run(world.context(name), command=command)
        result = await made.run(world.context(name), command="pwd; echo $WHO")
        assert isinstance(result, ToolResult)
        return result.text

    names = [f"s{number}" for number in range(8)]
    texts = await asyncio.gather(*(talk(name) for name in names))
    assert texts == [f"{world.root}/{name}\n{name}\n[exit code 0]" for name in names]


async def test_decision_gets_the_working_directory_of_the_command(world: TerminalHarness) -> None:
    made = world.tool()
    decide = made.decide
    assert decide is not None

    async def ask(name: str = "one", **arguments: str) -> None:
        await asyncio.to_thread(decide, {"command": "ls", **arguments}, world.context(name))

    await ask()
    await ask(workdir="/usr")
    await made.run(world.context("one"), command="cd /usr")
    await ask()
    await ask(workdir="lib")
    await ask(workdir="nowhere")
    await ask("two")
    here = str(world.root)
    assert [where for _, where in world.asked] == [here, "/usr", "/usr", "/usr/lib", "", here]


async def test_a_directory_that_is_gone_is_said(world: TerminalHarness) -> None:
    made = world.tool()
    await made.run(world.context(), command="mkdir -p a/b; cd a/b")
    shutil.rmtree(world.root / "a" / "b")
    result = await made.run(world.context(), command="pwd")
    assert isinstance(result, ToolResult)
    assert result.text.startswith(f"{world.root}/a\n[directory {world.root}/a/b no longer exists")


async def test_a_background_command_is_handed_over_with_where_and_what(world: TerminalHarness) -> None:
    taken: list[BackgroundCommand] = []

    async def take(command: BackgroundCommand) -> str:
        taken.append(command)
        return "started as proc_1"

    world.background = take
    await world.run("export A=1; cd /usr")
    assert await world.text("serve", background=True) == "started as proc_1"
    assert "timeout is ignored" in await world.text("serve", background=True, timeout=5)
    assert (taken[0].command, taken[0].cwd, taken[0].environ["A"]) == ("serve", "/usr", "1")


# --- how it ends


async def past_its_time(
    world: TerminalHarness, monkeypatch: pytest.MonkeyPatch, command: str, sleep: str
) -> ToolResult:
    """Run a command and move the clock past its timeout once its sleep runs and the timeout is armed."""
    loop = asyncio.get_running_loop()
    now = loop.time
    task = asyncio.create_task(world.run(command, timeout=500))
    await until(lambda: bool(running(sleep)))
    await until(lambda: any(timer.when() > now() + 300 for timer in loop._scheduled))  # type: ignore[attr-defined]
    monkeypatch.setattr(loop, "time", lambda: now() + 500)
    async with Awake() as awake:
        result = await task
    assert awake.s < 5
    return result


async def test_a_timeout_ends_the_command_and_its_children(
    world: TerminalHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = "echo before; sh -c 'sleep 1000.25' & sleep 1000.25 | cat"
    result = await past_its_time(world, monkeypatch, command, "1000.25")
    assert result.text.startswith("before\n[timed out after 500 s")
    assert not result.ok
    await until(lambda: not running("1000.25"))


async def test_the_time_that_a_command_has_is_real(world: TerminalHarness) -> None:
    assert "timed out after 0.3 s" in await world.text("sleep 1012.25", timeout=0.3)
    await until(lambda: not running("1012.25"))


async def test_a_command_that_ignores_the_polite_end_is_killed(
    world: TerminalHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    await past_its_time(world, monkeypatch, "trap '' TERM; sleep 1001.25; sleep 1001.25", "1001.25")
    assert time.monotonic() - began > 2
    await until(lambda: not running("1001.25"))


async def test_a_command_has_time_to_clean_up(world: TerminalHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    command = "trap 'echo cleaned > mark; exit' TERM; sleep 1011.25 & wait"
    await past_its_time(world, monkeypatch, command, "1011.25")
    assert (world.root / "mark").read_text() == "cleaned\n"


WHEN_IT_SLEEPS = "until grep -q sleep /proc/$!/comm; do :; done"  # and is no longer what started it


@pytest.mark.parametrize("left", ["sleep 1002.25 & disown", "nohup sleep 1002.25 >/dev/null 2>&1 &"])
async def test_what_a_command_leaves_running_is_ended_and_said(world: TerminalHarness, left: str) -> None:
    async with Awake() as awake:
        text = await world.text(f"{left}\n{WHEN_IT_SLEEPS}\necho done")
    assert awake.s < 5
    assert "done" in text
    assert "left processes running (sleep)" in text
    await until(lambda: not running("1002.25"))


async def test_a_child_that_ends_soon_after_its_shell_is_no_news(world: TerminalHarness) -> None:
    assert await world.text("(sleep 0.1; echo late) & echo early") == "early\nlate\n[exit code 0]"


async def test_a_process_that_left_the_group_does_not_hold_up_anybody(world: TerminalHarness) -> None:
    async with Awake() as awake:
        text = await world.text(f"setsid sleep 1003.25 & {WHEN_IT_SLEEPS}; echo done")
    try:
        assert awake.s < 5
        assert "done" in text
        note = "left the command's process group" if world.sandbox is None else "left processes running (sleep)"
        assert note in text
    finally:
        for pid in running("1003.25"):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("command", ["sleep 1004.25", "trap '' TERM; sleep 1004.25 & wait; sleep 1004.25"])
async def test_a_cancelled_command_is_gone_within_a_second(world: TerminalHarness, command: str) -> None:
    task = asyncio.create_task(world.run(command))
    await until(lambda: bool(running("1004.25")))
    async with Awake() as awake:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert awake.s < 1
    await until(lambda: not running("1004.25"))


async def test_cancelled_at_any_moment_nothing_is_left(world: TerminalHarness) -> None:
    for step in range(12):
        task = asyncio.create_task(world.run("sleep 1005.25"))
        await asyncio.sleep(step * 0.0015)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await until(lambda: not running("1005.25"))
    assert await world.text("true") == "(no output)\n[exit code 0]"


async def test_a_storm_of_processes_is_ended(world: TerminalHarness) -> None:
    world.settings["limits"] = ChildLimits(processes=40)
    text = await world.text("for i in {1..500}; do sleep 1006.25 & sleep 0.002; done; wait", timeout=50)
    # In a sandbox of an ordinary user the kernel refuses the processes above the limit.
    assert "more than the allowed 40" in text or "fork: Resource temporarily unavailable" in text
    await until(lambda: not running("1006.25"))


PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from hermes.tools.terminal.terminal_settings import TerminalSettings
from hermes.tools.terminal.terminal import terminal_tool
from hermes.tools.tool import ToolContext
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.turn.tool_call import Gate

root = Path(sys.argv[1])
context = ToolContext(session=SessionId("s"), turn=TurnId("t"), call="c", platform="p", folder=root / "f")
settings = TerminalSettings(environ=os.environ, work_of=lambda *_: str(root))
made = terminal_tool(settings, lambda command, cwd, **_: Gate())
asyncio.run(made.run(context, command="sleep 1007.25 & sleep 1007.25"))
"""


async def test_a_command_does_not_outlive_a_killed_daemon(tmp_path: Path) -> None:
    daemon = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, tmp_path)
    try:
        await until(lambda: len(running("1007.25")) == 2)
    finally:
        daemon.kill()
        await daemon.wait()
    await until(lambda: not running("1007.25"))


# --- output


async def test_a_huge_output_is_bounded_in_memory_and_on_disk(world: TerminalHarness) -> None:
    tracemalloc.start()
    try:
        async with Awake() as awake:
            text = await world.text("echo first; yes 'a line of some length' | head -c 100000000; echo; echo last")
        assert awake.s < 30
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()
    assert text.startswith("first\n")
    assert text.endswith("last\n[exit code 0]")
    assert len(text) < 51_000
    file = world.root / "folders" / "one" / "outputs" / "call_1.txt"
    assert str(file) in text
    assert "the rest was dropped" in text
    assert file.stat().st_size == 20 * 2**20
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


async def test_the_file_holds_the_whole_output_and_is_never_written_over(world: TerminalHarness) -> None:
    for numbers in (20_000, 30_000):
        assert "the whole output is in" in await world.text(f"seq {numbers}")
    outputs = world.root / "folders" / "one" / "outputs"
    for name, last in (("call_1.txt", 20_000), ("call_1-2.txt", 30_000)):
        assert (outputs / name).read_text().split() == [str(number) for number in range(1, last + 1)]


async def test_a_call_id_cannot_choose_another_place(world: TerminalHarness) -> None:
    await world.tool().run(world.context(call="../../evil/.x"), command="seq 20000")
    assert [file.name for file in (world.root / "folders" / "one" / "outputs").iterdir()] == ["______evil__x.txt"]


async def test_binary_output_is_text_in_the_end(world: TerminalHarness) -> None:
    # The bell ends whatever sequence the noise began, which would else take the beginning of the text for its own.
    text = await world.text("head -c 3000 /dev/urandom; printf '\\aa\\0b\\033[31mred\\033[0m\\377'")
    assert text.encode().decode() == text
    assert "abred\ufffd\n[exit code 0]" in text
    assert not set(text) & {chr(code) for code in range(32) if chr(code) not in "\t\n"}


async def test_progress_comes_in_whole_lines_and_not_too_often(world: TerminalHarness) -> None:
    await world.run("for i in $(seq 60); do printf 'st'; sleep 0.02; echo ep $i; done")
    times = [at for at, _ in world.shown]
    assert len(times) >= 3
    assert all(later - earlier > 0.2 for earlier, later in pairwise(times))
    lines = [line for _, text in world.shown for line in text.splitlines()]
    assert lines == [f"step {number}" for number in range(1, len(lines) + 1)]


async def test_progress_of_a_flood_is_small(world: TerminalHarness) -> None:
    await world.run("yes | head -c 30000000")
    assert world.shown
    assert all(len(text) <= 2000 for _, text in world.shown)


# --- what a command is given


async def test_no_descriptor_is_inherited(world: TerminalHarness) -> None:
    leaky = os.open(world.root, os.O_RDONLY)
    os.set_inheritable(leaky, True)
    try:
        text = await world.text("ls -l /proc/self/fd | tail -n +2 | sed 's/.* \\([0-9]* ->\\)/\\1/'")
    finally:
        os.close(leaky)
    descriptors = [line.split()[0] for line in text.splitlines()[:-1]]
    others = [each for each in descriptors if int(each) < 10]  # above is the file in memory for the shell's state
    assert others == ["0", "1", "2", "3"]  # 3 is what ls itself opened
    assert len(descriptors) - len(others) == (1 if world.sandbox is None else 3)
    assert text.startswith("0 -> /dev/null\n")


async def test_no_secret_reaches_a_command(world: TerminalHarness) -> None:
    world.settings["environ"] = {
        **ENVIRON,
        **dict.fromkeys(
            ("HERMES_MODEL_NAME", "OPENAI_API_KEY", "gh_token", "DB_PASSWORD", "PGPASS", "MY_AUTH", "PLAIN"), CANARY
        ),
        "DATABASE_URL": f"postgres://me:{CANARY}@host/db",
        "PASSED_TOKEN": "let through",
    }
    world.settings["passed_names"] = ("PASSED_TOKEN", "HERMES_MODEL_NAME")
    text = await world.text("env; set; cat /proc/$$/environ /proc/$PPID/environ /proc/$$/cmdline /proc/$PPID/cmdline")
    assert CANARY not in text
    assert "PASSED_TOKEN=let through" in text
    assert CANARY not in json.dumps(world.stored())
    assert CANARY not in repr(TerminalSettings(**world.settings))


async def test_no_program_waits_for_a_person(world: TerminalHarness) -> None:
    wanted: Mapping[str, str] = {"TERM": "dumb", "PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}
    lines = (await world.text("env")).splitlines()
    assert {f"{name}={value}" for name, value in wanted.items()} <= set(lines)


async def test_limits_hold(world: TerminalHarness) -> None:
    world.settings["limits"] = ChildLimits(file_bytes=2**20, open_files=64, memory_bytes=2**30)
    text = await world.text(
        "ulimit -c; ulimit -Hn; ulimit -Hf; ulimit -Hv; head -c 5000000 /dev/zero > big; ls -s big"
    )
    assert text.startswith("0\n64\n1024\n1048576\n")
    assert (world.root / "big").stat().st_size == 2**20


async def test_cpu_time_is_limited_in_the_foreground_only(world: TerminalHarness) -> None:
    world.settings["limits"] = ChildLimits(cpu_s=1)
    asked: list[BackgroundCommand] = []

    async def keep(command: BackgroundCommand) -> str:
        asked.append(command)
        return "started"

    world.background = keep
    text = await world.text("bash -c 'while :; do :; done'; echo $?", timeout=60)
    assert "137\n" in text or "152\n" in text  # SIGKILL: soft and hard limit are the same; or SIGXCPU
    await world.run("sleep 1", background=True)
    assert asked[0].limits.cpu_s == 0


async def test_the_command_leads_its_own_session_and_group(world: TerminalHarness) -> None:
    session, group = map(int, (await world.text("ps -o sid=,pgid= -p $$")).split()[:2])
    assert session == group
    assert session not in (os.getsid(0), os.getpgrp())


# --- terminal


async def test_on_request_there_is_a_terminal(world: TerminalHarness) -> None:
    program = "import os, sys; print(sys.stdin.isatty(), sys.stdout.isatty(), os.get_terminal_size().columns)"
    python = sys.executable if world.sandbox is None else "/usr/bin/python3"
    text = await world.text(f"tty; {python} -c '{program}'; echo direct >/dev/tty; exit 4", pty=True)
    assert text.startswith("/dev/pts/" if world.sandbox is None else "/dev/console")
    assert text.endswith("True True 120\ndirect\n[exit code 4]")


async def test_without_it_there_is_none(world: TerminalHarness) -> None:
    assert "not a tty" in await world.text("tty")
    assert "[exit code 1]" in await world.text("(: </dev/tty) 2>/dev/null")


async def test_a_terminal_shows_what_was_left_on_the_screen(world: TerminalHarness) -> None:
    text = await world.text("printf '10%%\\r50%%\\r100%%\\n\\033[1mbold\\033[0m abc\\b\\bX\\n'", pty=True)
    assert text == "100%\nbold aXc\n[exit code 0]"


async def test_question_on_a_terminal_gets_no_answer(world: TerminalHarness) -> None:
    assert "[exit code 1]" in await world.text("read -p 'sure? ' answer", pty=True, timeout=20)


async def test_all_that_was_written_to_a_terminal_arrives(world: TerminalHarness) -> None:
    text = await world.text("seq 5000", pty=True)
    assert text.split("\n")[:5000] == [str(number) for number in range(1, 5001)]


async def test_a_terminal_command_is_ended_like_others(world: TerminalHarness) -> None:
    assert "timed out" in await world.text("sleep 1008.25", pty=True, timeout=0.3)
    await until(lambda: not running("1008.25"))


# --- without bash


async def test_sh_will_do(world: TerminalHarness) -> None:
    programs = world.root / "bin"
    programs.mkdir()
    (programs / "env").symlink_to("/usr/bin/env")
    world.settings["environ"] = {**ENVIRON, "PATH": str(programs)}
    await world.run("cd /usr; export A=1; exit 3")
    assert await world.text("pwd; echo $A") == "/usr\n1\n[exit code 0]"
    assert "left processes" in await world.text("/bin/sleep 1009.25 & echo x")


async def test_output_that_was_cut_already_is_not_called_the_whole(world: TerminalHarness) -> None:
    toolbox = Toolbox((world.tool(),), toolsets={"default": ["terminal"]})
    command = "head -c 1000000 /dev/zero | tr '\\0' x"
    result = await toolbox.run("terminal", {"command": command}, world.context())
    assert "950000 of 1000000 bytes left out here" in result.text
    assert "this excerpt has" in result.text
    assert result.text.count("the whole output") == 1, "the one that the command wrote"
    assert result.excerpt

    result = await toolbox.run("terminal", {"command": "seq 3000"}, world.context())
    assert "the whole output has" in result.text
    assert not result.excerpt
