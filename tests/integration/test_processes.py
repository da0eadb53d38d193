"""Background processes with the real daemon and real commands: through tools, surfaces, stops and kills."""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hermes.cli.client import AdminError
from hermes.domain.text.fence import without_fences
from tests.processes.stage import with_argument
from tests.support.daemon_process import DaemonProcess
from tests.support.waiting import eventually

KILLS = int(os.environ.get("HERMES_TEST_KILLS", "6"))
PROCESSES = int(os.environ.get("HERMES_TEST_PROCESSES", "6"))
SEED = int(os.environ.get("HERMES_TEST_SEED", "0")) or random.SystemRandom().randrange(1 << 32)
CONFIG = "processes: {heartbeat_s: 0.5, max_per_session: 32}\n"

pytestmark = pytest.mark.timeout(120 + 5 * KILLS)


@pytest.fixture
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess(config=CONFIG) as daemon:
        yield daemon
        daemon.end_processes()


def call(name: str, **arguments: Any) -> str:
    return f"!tool {name} {json.dumps(arguments)}"


def tool(daemon: DaemonProcess, session: str, name: str, **arguments: Any) -> str:
    """What the tool said, or whatever came instead."""
    answer = daemon.ask(f"{call(name, **arguments)}\n!echo over", session=session).text
    if answer != "over":
        return answer
    transcript = daemon.admin.get(f"/sessions/{session}", tail=20)["transcript"]
    return str(next(message["content"] for message in reversed(transcript) if message["role"] == "tool"))


def start(daemon: DaemonProcess, session: str, command: str, **wishes: Any) -> str:
    said = tool(daemon, session, "terminal", command=command, background=True, **wishes)
    found = re.search(r"proc_[0-9a-f]{12}", said)
    assert found, said
    return found[0]


def until(file: Path) -> str:
    """For a command that goes on when the file is there."""
    return f"until [ -e {file} ]; do sleep 0.05; done"


def processes(daemon: DaemonProcess) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = daemon.admin.get("/api/processes")["processes"]
    return listed


def process(daemon: DaemonProcess, name: str) -> dict[str, Any]:
    return next(each for each in processes(daemon) if each["id"] == name)


def told(daemon: DaemonProcess, session: str) -> list[str]:
    """What the conversation was told of its processes, wherever it went on."""
    view = daemon.admin.get(f"/sessions/{session}", tail=0)
    pages = (daemon.admin.get(f"/sessions/{each}", tail=1000, exact=1)["transcript"] for each in view["lineage"])
    said = (str(message["content"]) for page in pages for message in page if message["role"] == "user")
    return [without_fences(text) for text in said if text.startswith("[Background process")]


# ---------------------------------------------------------------- the tool


def test_a_process_is_started_listed_written_to_read_and_waited_for(daemon: DaemonProcess) -> None:
    name = start(daemon, "s", "echo begun; read line; echo got $line; exit 3")
    assert f"running  {name}" in tool(daemon, "s", "process", action="list")
    eventually(lambda: "begun" in tool(daemon, "s", "process", action="log", id=name))
    assert "Sent 6 bytes" in tool(daemon, "s", "process", action="submit", id=name, data="hello")
    waited = tool(daemon, "s", "process", action="wait", id=name, timeout=10)
    assert "exit code 3" in waited
    assert "got hello" in waited
    assert "got" in tool(daemon, "s", "process", action="log", id=name, offset=6, limit=3)
    assert "has ended" in tool(daemon, "s", "process", action="write", id=name, data="more")
    assert told(daemon, "s") == []


def test_a_kill_ends_all_that_the_command_started(daemon: DaemonProcess, tmp_path: Path) -> None:
    mark = f"mark-{tmp_path.name}"
    name = start(daemon, "s", f"sh -c 'sleep 300; : {mark}' & sleep 300; : {mark}")
    eventually(lambda: len(with_argument(mark)) >= 2)
    assert "signal" in tool(daemon, "s", "process", action="kill", id=name)
    eventually(lambda: not with_argument(mark))


def test_closing_its_input_is_the_end_of_what_it_reads(daemon: DaemonProcess) -> None:
    name = start(daemon, "s", "cat; echo over")
    tool(daemon, "s", "process", action="write", id=name, data="words\n")
    tool(daemon, "s", "process", action="close", id=name)
    assert "words\nover" in tool(daemon, "s", "process", action="wait", id=name, timeout=10)


def test_another_conversation_does_not_see_it(daemon: DaemonProcess) -> None:
    name = start(daemon, "s", "sleep 300")
    assert "no background processes" in tool(daemon, "other", "process", action="list")
    assert "has no background process" in tool(daemon, "other", "process", action="kill", id=name)
    assert process(daemon, name)["running"]


def test_a_wait_ends_when_its_time_is_up(daemon: DaemonProcess) -> None:
    name = start(daemon, "s", "sleep 300")
    assert "Still running" in tool(daemon, "s", "process", action="wait", id=name, timeout=0.2)


def test_a_stop_during_a_wait_ends_the_turn_and_not_the_process(daemon: DaemonProcess) -> None:
    name = start(daemon, "s", "sleep 300")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(daemon.ask, call("process", action="wait", id=name, timeout=100), "s")
        eventually(lambda: daemon.admin.get("/sessions/s")["session"]["phase"] == "running")
        eventually(lambda: "process" in str(daemon.admin.get("/sessions/s", tail=1)["transcript"]))
        began = time.monotonic()
        daemon.request("POST", "/api/sessions/s/commands", {"text": "/stop"})
        assert "stopped" in waiting.result(40).body.decode()
        assert time.monotonic() - began < 30
    assert process(daemon, name)["running"]
    assert f"running  {name}" in tool(daemon, "s", "process", action="list")


def test_a_dangerous_line_is_stopped_also_when_it_comes_in_pieces_and_after_a_restart(daemon: DaemonProcess) -> None:
    name = start(daemon, "s", "cat")
    assert "Sent " in tool(daemon, "s", "process", action="write", id=name, data="r")
    daemon.kill()
    daemon.start()
    assert "Sent " not in tool(daemon, "s", "process", action="submit", id=name, data="m -rf /")
    eventually(lambda: tool(daemon, "s", "process", action="log", id=name).startswith("r\n["))


def test_what_is_written_to_a_process_is_judged_as_a_command_would_be(daemon: DaemonProcess) -> None:
    name = start(daemon, "s", "cat")
    assert "Sent " not in tool(daemon, "s", "process", action="submit", id=name, data="rm -rf /")
    assert "Sent " in tool(daemon, "s", "process", action="submit", id=name, data="hello")
    eventually(lambda: "hello" in tool(daemon, "s", "process", action="log", id=name))
    assert "rm" not in tool(daemon, "s", "process", action="log", id=name)


# ---------------------------------------------------------------- one list


def test_every_surface_shows_the_same_list_and_can_end_one(daemon: DaemonProcess) -> None:
    first = start(daemon, "s", "python3 -m http.server 0 --bind 127.0.0.1", pty=True, workdir="/usr/share")
    second, third = start(daemon, "s", "sleep 301"), start(daemon, "t", "sleep 302")
    eventually(lambda: process(daemon, first)["ports"])
    assert [each["id"] for each in processes(daemon)] == [first, second, third]
    own = daemon.request("GET", "/api/sessions/s/processes").json()["processes"]
    assert [each["id"] for each in own] == [first, second]
    assert own[0]["blocks_reset"]
    assert "A reset would wait for it" in own[0]["explanation"]
    shown = daemon.request("POST", "/api/sessions/s/commands", {"text": "/processes"}).json()["text"]
    assert f"1. {first}" in shown
    assert "listens on port" in shown
    printed = daemon.hermes("ps", "--processes").stdout
    assert all(name in printed for name in (first, second, third))
    assert [actor["kind"] for actor in daemon.admin.get("/actors")["actors"]].count("process") == 3
    reply = daemon.request("POST", "/api/sessions/s/commands", {"text": "/processes kill 2"}).json()
    assert reply["ok"], reply
    assert process(daemon, second)["running"] is False
    killed = daemon.hermes("kill", third[:9])
    assert killed.returncode == 0, killed.stderr
    assert "was ended" in killed.stdout
    assert "killed: requested by the operator" in killed.stdout
    again = daemon.hermes("kill", third)
    assert (again.returncode, again.stdout) == (1, "")
    assert "has ended already" in again.stderr
    assert "Serving HTTP" in daemon.hermes("log", first).stdout
    assert "Serving HTTP" in daemon.request("GET", f"/api/processes/{first}/log").json()["text"]
    with pytest.raises(AdminError, match="no background process"):
        daemon.admin.post("/api/processes/proc_none/kill")


# ---------------------------------------------------------------- told


def test_the_end_wakes_the_session_once(daemon: DaemonProcess) -> None:
    name = start(daemon, "s", "echo all went well; exit 5", notify=True)
    [text] = eventually(lambda: told(daemon, "s"))
    assert name in text
    assert "exit code 5" in text
    assert "all went well" in text
    eventually(lambda: daemon.admin.get("/sessions/s")["session"]["phase"] == "idle")
    daemon.kill()
    daemon.start()
    eventually(lambda: any(each["id"] == name for each in processes(daemon)))
    assert len(told(daemon, "s")) == 1


def test_what_the_agent_waited_for_is_not_told_again_and_the_rest_is(daemon: DaemonProcess, tmp_path: Path) -> None:
    first = start(daemon, "s", f"{until(tmp_path / 'one')}; exit 9", notify=True)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(tool, daemon, "s", "process", action="wait", id=first)
        eventually(lambda: "process" in str(daemon.admin.get("/sessions/s", tail=1)["transcript"]))
        (tmp_path / "one").touch()
        assert "exit code 9" in waiting.result()
    line = f"echo FOO1; {until(tmp_path / 'two')}; echo FOO2; (setsid sleep 300 &); exit 3"
    second = start(daemon, "s", line, watch=["FOO"], notify=True)
    eventually(lambda: told(daemon, "s"))
    (tmp_path / "two").touch()
    texts = eventually(lambda: texts if len(texts := told(daemon, "s")) == 3 else None)
    assert not any(first in text for text in texts)
    assert [line for text in texts[:2] for line in text.splitlines() if line.startswith("FOO")] == ["FOO1", "FOO2"]
    assert f"{second} has ended with exit code 3 (what it left running was ended: sleep)" in texts[2]


def test_watched_line_is_reported(daemon: DaemonProcess) -> None:
    start(daemon, "s", "echo warming up; echo server ready; sleep 300", watch=["ready"])
    [text] = eventually(lambda: told(daemon, "s"))
    assert "server ready" in text
    assert "warming" not in text.partition("\n")[2].partition("\n")[2]


# ---------------------------------------------------------------- stops


def test_a_planned_stop_leaves_processes_running_and_the_next_start_finds_them(
    daemon: DaemonProcess, tmp_path: Path
) -> None:
    name = start(daemon, "s", f"{until(tmp_path / 'go-on')}; echo survived; exit 4", notify=True)
    pid = process(daemon, name)["pid"]
    assert daemon.terminate() == 0
    assert Path(f"/proc/{pid}").exists()
    (tmp_path / "go-on").touch()
    daemon.start()
    [text] = eventually(lambda: told(daemon, "s"))
    assert "exit code 4" in text
    assert "survived" in text


def test_planned_stop_ends_processes_if_configured() -> None:
    with DaemonProcess(config="processes: {keep_on_stop: false}\n") as daemon:
        name = start(daemon, "s", "sleep 300")
        pid = process(daemon, name)["pid"]
        assert daemon.terminate() == 0
        eventually(lambda: not Path(f"/proc/{pid}").exists())  # somebody has to bury it


def test_a_deleted_conversation_takes_its_processes_along(daemon: DaemonProcess) -> None:
    name = start(daemon, "s", "sleep 300", notify=True)
    pid = process(daemon, name)["pid"]
    assert daemon.request("DELETE", "/api/sessions/s").status == 200
    eventually(lambda: not processes(daemon))
    eventually(lambda: not Path(f"/proc/{pid}").exists())
    assert daemon.request("GET", "/api/sessions/s").status == 404


# ---------------------------------------------------------------- kills


def test_no_process_is_lost_or_doubled_by_kills_and_every_end_is_told_once(
    daemon: DaemonProcess, tmp_path: Path
) -> None:
    """They end at various times while the daemon is killed and restarted; each leaves a trace of how often it ran."""
    chance = random.Random(SEED)
    print(f"seed {SEED}, {PROCESSES} processes, {KILLS} kills")
    lasting_s = KILLS * 0.6
    runs = tmp_path / "runs"
    names: dict[str, int] = {}
    for number in range(PROCESSES):
        steps = max(1, int(lasting_s * chance.uniform(0.1, 1.2) / 0.1))
        command = (
            f"echo {number} >> {runs}; for n in $(seq {steps}); do echo line $n; sleep 0.1; done; exit {number % 100}"
        )
        names[start(daemon, f"s{number % 3}", command, notify=True)] = number
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.05, 0.6))
        daemon.kill()
        time.sleep(chance.uniform(0, 0.2))
        daemon.start()
        assert {each["id"] for each in processes(daemon)} <= set(names)
    eventually(lambda: _all_ended(daemon, names), within_s=lasting_s + 30)
    eventually(lambda: sum(len(told(daemon, f"s{n}")) for n in range(3)) >= PROCESSES, within_s=30)
    for each in processes(daemon):
        assert (each["exit_code"], each["reason"]) == (names[each["id"]] % 100, "exited"), each
    assert sorted(map(int, runs.read_text().split())) == sorted(names.values()), "one ran twice, or not at all"
    all_told = [text for n in range(3) for text in told(daemon, f"s{n}")]
    for name, number in names.items():
        ends = [text for text in all_told if name in text]
        assert len(ends) == 1, (name, ends)
        log = tool(daemon, f"s{number % 3}", "process", action="log", id=name, offset=0, limit=40_000)
        lines = [int(line.split()[1]) for line in log.splitlines() if re.fullmatch(r"line \d+", line)]
        assert lines == list(range(1, len(lines) + 1))
        assert f"exit code {number % 100}" in ends[0]


def _all_ended(daemon: DaemonProcess, names: dict[str, int]) -> bool:
    listed = processes(daemon)
    return {each["id"] for each in listed} == set(names) and not any(each["running"] for each in listed)
