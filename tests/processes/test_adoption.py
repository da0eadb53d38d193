"""Adoption of processes after their daemon was killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hermes.domain.process.process import EndReason, Handle, Lost
from hermes.processes.host import LinuxProcessHost
from hermes.processes.shim.member import boot_id, look_at
from tests.processes.stage import ProcessFixture, alive, asleep, process_id, with_argument
from tests.support.waiting import eventually

COUNTING = "i=0; while [ ! -e go ]; do i=$((i+1)); echo $i; sleep 0.02; done; echo end $i; exit {}"


@contextmanager
def daemon(stage: ProcessFixture, count: int, *command: str) -> Iterator[subprocess.Popen[str]]:
    argv = [sys.executable, "-m", "tests.processes.daemon", str(stage.root), str(count), *command]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def ready(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("ready"):
            return int(line.split()[1])
    raise AssertionError("the daemon died")


def adopted(stage: ProcessFixture, name: str) -> Handle:
    handle = stage.adopt(stage.root / name)
    assert isinstance(handle, Handle), handle.reason
    return handle


def counted(output: bytes) -> None:
    *numbers, last = output.decode().splitlines()
    assert [int(number) for number in numbers] == list(range(1, len(numbers) + 1))
    assert last == f"end {len(numbers)}"


def test_process_survives_its_daemon_and_is_adopted_by_the_next(stage: ProcessFixture, tmp_path: Path) -> None:
    with daemon(stage, 1, "sh", "-c", "read x; echo got $x; " + COUNTING.replace("{}", "7")) as process:
        assert ready(process) == 1
        process.kill()
    handle = adopted(stage, process_id(stage.root, 0))
    assert stage.look(handle).alive
    stage.write(handle, b"it\n")
    stage.until_output(handle, b"got it\n1\n")
    (tmp_path / "go").touch()
    assert stage.ended(handle).code == 7
    counted(stage.all_output(handle).removeprefix(b"got it\n"))


def test_copy_of_a_home_does_not_touch_processes_of_the_original(stage: ProcessFixture, tmp_path: Path) -> None:
    handle = stage.run("sleep", "60")
    copy = tmp_path / "copy" / handle.id
    copy.mkdir(parents=True)
    (copy / "state.json").write_bytes((stage.root / handle.id / "state.json").read_bytes())
    found = LinuxProcessHost(copy.parent).adopt(copy)
    assert isinstance(found, Lost)
    assert "another home" in found.reason
    assert alive(handle.pid)
    os.kill(handle.shim_pid, signal.SIGKILL)  # even then the copy must not end it
    eventually(lambda: not alive(handle.shim_pid))
    assert isinstance(LinuxProcessHost(copy.parent).adopt(copy), Lost)
    assert alive(handle.pid)
    assert isinstance(stage.adopt(stage.root / handle.id), Lost)


def test_moved_home_keeps_its_processes(stage: ProcessFixture, tmp_path: Path) -> None:
    handle = stage.run("sleep", "60")
    moved = stage.root.rename(tmp_path / "moved")
    found = LinuxProcessHost(moved).adopt(moved / handle.id)
    assert isinstance(found, Handle)
    assert stage.kill(found, 0)
    assert ProcessFixture(moved).wait(found, 20) is not None


def test_end_without_a_daemon_is_known_afterwards(stage: ProcessFixture, tmp_path: Path) -> None:
    with daemon(stage, 1, "sh", "-c", COUNTING.replace("{}", "9")) as process:
        assert ready(process) == 1
        process.kill()
    (tmp_path / "go").touch()
    eventually((stage.root / process_id(stage.root, 0) / "exit.json").exists)
    handle = adopted(stage, process_id(stage.root, 0))
    assert stage.ended(handle).code == 9
    counted(stage.all_output(handle))


def test_twenty_processes_survive_five_kills_of_the_daemon(stage: ProcessFixture, tmp_path: Path) -> None:
    first: list[Handle] = []
    for _ in range(5):
        with daemon(stage, 20, "sh", "-c", COUNTING) as process:
            assert ready(process) == 20
            process.kill()
        seen = [adopted(stage, process_id(stage.root, number)) for number in range(20)]
        first = first or seen
        assert seen == first  # the same processes, not others in their place
    (tmp_path / "go").touch()
    for number, handle in enumerate(first):
        assert stage.ended(handle).code == number
        counted(stage.all_output(handle))
    assert len(stage.stored()) == 20


def test_daemon_killed_during_a_start_leaves_no_unknown_process(stage: ProcessFixture) -> None:
    mark = f"1{time.monotonic_ns()}"
    chance = random.Random(7)
    for count in range(5, 26, 5):
        with daemon(stage, count, "sleep", mark) as process:
            assert process.stdout is not None
            assert process.stdout.readline()
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0.001, 0.08))
            process.kill()
    found = [stage.adopt(stage.root / name) for name in stage.stored()]
    running = sorted(handle.pid for handle in found if isinstance(handle, Handle))
    eventually(lambda: sorted(with_argument(mark)) == running)


def test_adoption_waits_for_a_slow_shim(stage: ProcessFixture) -> None:
    handle = stage.run("sleep", "100")
    state = Path(handle.folder, "state.json")
    hidden = state.rename(state.with_name("hidden"))
    said = threading.Timer(2, hidden.rename, (state,))
    said.start()
    assert stage.adopt(Path(handle.folder)) == handle
    said.join(30)


@contextmanager
def stranger_process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "100"], start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


def forged(stage: ProcessFixture, **changes: Any) -> Path:
    """Return a process that has ended, but whose state file claims that it runs."""
    handle = stage.run("true")
    stage.ended(handle)
    folder = Path(handle.folder)
    (folder / "exit.json").unlink()
    state = json.loads((folder / "state.json").read_text())
    before = {name: state[name] - 100 for name in ("started_ticks", "shim_started_ticks")}
    (folder / "state.json").write_text(json.dumps({**state, **before, **changes}))
    return folder


def test_a_reused_pid_is_never_touched(stage: ProcessFixture) -> None:
    with stranger_process() as stranger:
        folder = forged(stage, pid=stranger.pid, shim_pid=stranger.pid)
        lost = stage.adopt(folder)
        assert isinstance(lost, Lost)
        assert "shim was killed" in lost.reason
        state = json.loads((folder / "state.json").read_text())
        handle = Handle(id=folder.name, folder=str(folder), **{**state, "terminal": False})
        assert not stage.look(handle).alive
        assert not stage.kill(handle, 0)
        assert not stage.signal(handle, signal.SIGKILL)
        assert stage.end_fd(handle) is None
        assert stage.ports((handle,)) == {handle.id: ()}
        assert alive(stranger.pid)
        stage.forget(handle)
        assert stranger.poll() is None


def test_a_pid_of_an_earlier_boot_is_never_touched(stage: ProcessFixture) -> None:
    with stranger_process() as stranger:
        member = look_at(stranger.pid)
        assert member is not None
        ticks = {"started_ticks": member.started, "shim_started_ticks": member.started}
        folder = forged(stage, pid=stranger.pid, shim_pid=stranger.pid, boot_id="another", **ticks)
        lost = stage.adopt(folder)
        assert isinstance(lost, Lost)
        assert "restarted" in lost.reason
        assert stranger.poll() is None


def test_adoption_does_not_depend_on_the_clock(stage: ProcessFixture) -> None:
    handle = stage.run("sleep", "100")
    state = Path(handle.folder, "state.json")
    for started_at in (0.0, time.time() + 10**9):
        state.write_text(json.dumps({**json.loads(state.read_text()), "started_at": started_at}))
        again = adopted(stage, handle.id)
        assert (again.pid, again.started_ticks, again.boot_id) == (handle.pid, handle.started_ticks, boot_id())
        assert stage.look(again).alive


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"pid": 1}', "\0\0\0"])
def test_garbled_state_is_reported_as_lost(stage: ProcessFixture, text: str) -> None:
    folder = stage.root / process_id(stage.root, 0)
    folder.mkdir(parents=True)
    (folder / "state.json").write_text(text)
    lost = stage.adopt(folder)
    assert isinstance(lost, Lost)
    assert lost.reason
    stage.forget(lost)
    assert stage.stored() == ()


def test_command_of_a_killed_shim_is_lost_and_ended(stage: ProcessFixture) -> None:
    mark = f"1{time.monotonic_ns()}"
    handle = stage.run("sh", "-c", f"echo said; sleep {mark} & sleep {mark}")
    stage.until_output(handle, b"said")
    os.kill(handle.shim_pid, signal.SIGKILL)
    end = stage.ended(handle)
    assert end.reason is EndReason.LOST
    assert "still ran and was ended" in end.detail
    assert (end.code, end.signal) == (None, None)
    eventually(lambda: with_argument(mark) == [])
    assert stage.all_output(handle) == b"said\n"
    assert isinstance(stage.adopt(Path(handle.folder)), Lost)


def test_process_outside_the_group_is_ended_after_a_killed_shim(stage: ProcessFixture) -> None:
    mark = f"1{time.monotonic_ns()}"
    away = f"setsid sh -c '(setsid sleep {mark} &) ; sleep {mark}' & echo said; sleep {mark}"
    handle = stage.run("sh", "-c", away)
    stage.until_output(handle, b"said")
    eventually(lambda: asleep(mark) == 3)
    os.kill(handle.shim_pid, signal.SIGKILL)
    assert stage.ended(handle).reason is EndReason.LOST
    eventually(lambda: with_argument(mark) == [])


def test_leftovers_without_shim_and_command_are_ended(stage: ProcessFixture) -> None:
    mark = f"1{time.monotonic_ns()}"
    handle = stage.run("sh", "-c", f"setsid sleep {mark} & echo said; sleep 1000")
    other = stage.run("sleep", mark)
    stage.until_output(handle, b"said")
    eventually(lambda: asleep(mark) == 2)
    os.kill(handle.shim_pid, signal.SIGKILL)
    os.killpg(handle.pid, signal.SIGKILL)
    eventually(lambda: not alive(handle.shim_pid))
    assert isinstance(stage.adopt(Path(handle.folder)), Lost)
    eventually(lambda: with_argument(mark) == [other.pid])
