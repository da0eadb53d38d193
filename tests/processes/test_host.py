"""Process host with real processes and shims."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hermes.domain.process.process import EndReason, FailedStart, Handle, ProcessLimits, ProcessSpec
from hermes.processes.identity import kill_marked
from hermes.processes.shim.member import look_at
from hermes.tools.terminal.child_environment import child_environment
from tests.processes.stage import ENVIRON, ProcessFixture, alive, asleep, process_id, sleeps, with_argument
from tests.support.waiting import eventually


@pytest.mark.parametrize("code", [0, 1, 42, 255])
def test_an_exit_code_is_kept(stage: ProcessFixture, code: int) -> None:
    end = stage.ended(stage.run("sh", "-c", f"exit {code}"))
    assert (end.reason, end.code, end.signal) == (EndReason.EXITED, code, None)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGHUP, signal.SIGPIPE])
def test_death_by_signal_differs_from_an_exit_code(stage: ProcessFixture, number: int) -> None:
    end = stage.ended(stage.run("sh", "-c", f"ulimit -c 0; kill -{number:d} $$"))
    assert (end.reason, end.code, end.signal) == (EndReason.EXITED, None, number)


def test_the_output_of_both_streams_is_kept_in_order(stage: ProcessFixture) -> None:
    handle = stage.run("sh", "-c", "echo one; echo two >&2; echo three")
    end = stage.ended(handle)
    assert stage.all_output(handle) == b"one\ntwo\nthree\n"
    assert end.output_bytes == 14
    assert stage.output(handle, 4, 3).data == b"two"
    assert stage.tail(handle, 6).data == b"three\n"
    assert stage.output(handle, 99, 5).data == b""


@pytest.mark.parametrize(
    ("argv", "cwd", "reason"),
    [
        (("no-such-command",), "/", "no-such-command: No such file"),
        (("/etc/passwd",), "/", "Permission denied"),
        (("true",), "/no/such/folder", "/no/such/folder: No such file"),
        ((), "/", "command is empty"),
        (("echo", "a\0b"), "/", "NUL"),
    ],
)
def test_failed_start_returns_its_reason_and_leaves_no_folder(
    stage: ProcessFixture, argv: tuple[str, ...], cwd: str, reason: str
) -> None:
    environ = {**ENVIRON, "PATH": "/usr/bin:/bin"}  # a directory that cannot be read gives another reason
    failed = stage.start(ProcessSpec(id=process_id(stage.root, 0), argv=argv, cwd=cwd, environ=environ))
    assert isinstance(failed, FailedStart)
    assert reason in failed.reason
    assert stage.stored() == ()


def test_an_id_is_used_once(stage: ProcessFixture) -> None:
    handle = stage.run("sleep", "100")
    again = stage.start(ProcessSpec(id=handle.id, argv=("true",), cwd="/", environ=ENVIRON))
    assert isinstance(again, FailedStart)
    assert stage.look(handle).alive


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "/x", "a/b"])
def test_an_id_names_a_folder_of_its_own(stage: ProcessFixture, tmp_path: Path, name: str) -> None:
    (tmp_path / "x").mkdir()
    assert isinstance(stage.start(ProcessSpec(id=name, argv=("true",), cwd="/", environ=ENVIRON)), FailedStart)
    assert (tmp_path / "x").exists()


def test_a_command_larger_than_a_pipe_arrives_whole(stage: ProcessFixture) -> None:
    environ = {**ENVIRON, **{f"V{number}": "x" * 1000 for number in range(300)}}
    handle = stage.run("sh", "-c", "env | grep -c ^V", environ=environ)
    stage.ended(handle)
    assert stage.all_output(handle) == b"300\n"


def test_a_command_gets_three_descriptors_its_own_session_and_ordinary_signals(stage: ProcessFixture) -> None:
    spare = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(spare, True)
    try:
        handle = stage.run("sleep", "100")
    finally:
        os.close(spare)
    eventually(lambda: sleeps(handle.pid))  # its libraries are loaded, and their files closed
    assert sorted(entry.name for entry in Path(f"/proc/{handle.pid}/fd").iterdir()) == ["0", "1", "2"]
    assert os.getsid(handle.pid) == os.getpgid(handle.pid) == handle.pid
    assert os.getsid(handle.shim_pid) == handle.shim_pid
    status = dict(line.split(":\t") for line in Path(f"/proc/{handle.pid}/status").read_text().splitlines())
    assert int(status["SigBlk"], 16) == 0
    assert int(status["SigIgn"], 16) & 0x7FFF_FFFF == 0  # above are those of the C library


def test_no_secret_is_in_an_argument_an_environment_or_a_file(
    stage: ProcessFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "canary-of-the-daemon")
    environ = child_environment(os.environ) | {"GIVEN": "canary-of-the-command"}
    handle = stage.run("sleep", "100", environ=environ)
    seen = b"".join(
        Path(f"/proc/{pid}/{name}").read_bytes()
        for pid in (handle.pid, handle.shim_pid)
        for name in ("cmdline", "environ")
    )
    assert b"canary-of-the-daemon" not in seen
    shim = Path(f"/proc/{handle.shim_pid}")
    assert b"canary" not in (shim / "environ").read_bytes() + (shim / "cmdline").read_bytes()
    stage.kill(handle)
    stage.ended(handle)
    for path in Path(handle.folder).iterdir():
        assert b"canary" not in path.read_bytes()
        assert path.stat().st_mode & 0o077 == 0 or path.name == "grace"
    assert Path(handle.folder).stat().st_mode & 0o077 == 0


def test_input_arrives_and_closing_it_ends_the_command(stage: ProcessFixture) -> None:
    handle = stage.run("sh", "-c", "while read -r line; do echo got $line; done; echo over")
    assert stage.write(handle, b"one\ntw") == 6
    stage.until_output(handle, b"got one\n")
    assert stage.write(handle, b"o\n") == 2
    stage.until_output(handle, b"got two\n")
    stage.write(handle, b"three\n")
    stage.close_input(handle)
    assert stage.ended(handle).code == 0
    assert stage.all_output(handle) == b"got one\ngot two\ngot three\nover\n"
    with pytest.raises(BrokenPipeError):
        stage.write(handle, b"more")


def test_a_command_that_does_not_read_takes_only_what_fits(stage: ProcessFixture) -> None:
    handle = stage.run("sleep", "100")
    taken = stage.write(handle, bytes(10**6), timeout_s=0.1)
    assert 4096 <= taken < 10**6
    stage.close_input(handle)

    def closed() -> bool:
        try:
            stage.write(handle, b"x", timeout_s=0)
        except BrokenPipeError:
            return True
        return False

    eventually(closed)


def test_terminal_accepts_input(stage: ProcessFixture) -> None:
    script = "test -t 0 && test -t 1 && stty size; : < /dev/tty && tty; read x; echo got:$x; cat; echo over"
    handle = stage.run("sh", "-c", script, terminal=True)
    stage.until_output(handle, b"/dev/pts/")
    assert b"40 120\r\n" in stage.all_output(handle)
    stage.write(handle, b"hello\n")
    stage.until_output(handle, b"got:hello\r\n")
    stage.write(handle, b"half a line")
    stage.close_input(handle)
    assert stage.ended(handle).code == 0
    assert stage.all_output(handle).count(b"half a line") == 2  # as it was typed, and from cat
    assert stage.all_output(handle).endswith(b"over\r\n")


def test_control_c_at_a_terminal_interrupts_the_command(stage: ProcessFixture) -> None:
    handle = stage.run("sleep", "100", terminal=True)
    stage.write(handle, b"\x03")
    assert stage.ended(handle).signal == signal.SIGINT


def test_kill_sends_sigterm_first(stage: ProcessFixture) -> None:
    handle = stage.run("sh", "-c", "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.05; done")
    stage.until_output(handle, b"ready")
    assert stage.kill(handle, grace_s=10, why="somebody asked for it")
    end = stage.ended(handle)
    assert (end.reason, end.code, end.detail) == (EndReason.KILLED, 5, "somebody asked for it")
    assert stage.all_output(handle).endswith(b"bye\n")
    assert not stage.kill(handle)


@pytest.mark.parametrize("stopped", [False, True])
def test_kill_forces_the_end_of_all_processes(stage: ProcessFixture, stopped: bool) -> None:
    mark = f"1{time.monotonic_ns()}"
    script = f"trap '' TERM; sleep {mark} & setsid sleep {mark} & echo ready; while :; do sleep {mark}; done"
    handle = stage.run("sh", "-c", script)
    stage.until_output(handle, b"ready")
    eventually(lambda: asleep(mark) == 3)
    if stopped:
        assert stage.signal(handle, signal.SIGSTOP)
        os.kill(handle.shim_pid, signal.SIGSTOP)
    began = time.monotonic()
    stage.kill(handle, grace_s=0.2)
    assert stage.ended(handle).signal == signal.SIGKILL
    assert time.monotonic() - began >= 0.2
    assert with_argument(mark) == []


def test_a_second_kill_does_not_wait_for_the_first(stage: ProcessFixture) -> None:
    handle = stage.run("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 100; done")
    stage.until_output(handle, b"ready")
    stage.kill(handle, grace_s=1000)
    assert stage.look(handle).alive

    def over() -> bool:
        stage.kill(handle, grace_s=1000)  # again: one that comes with the first is the same to the shim
        return stage.wait(handle, 0.1) is not None

    eventually(over)


def test_grandchild_with_open_output_is_ended_and_named(stage: ProcessFixture) -> None:
    mark = f"1{time.monotonic_ns()}"
    handle = stage.run("sh", "-c", f"sleep {mark} & setsid sleep {mark} & read x; echo done; exit 3")
    eventually(lambda: asleep(mark) == 2)
    stage.write(handle, b"\n")
    end = stage.ended(handle)
    assert (end.reason, end.code, end.left) == (EndReason.EXITED, 3, ("sleep",))
    assert stage.all_output(handle) == b"done\n"
    assert with_argument(mark) == []


def test_process_that_ends_soon_after_the_command_may_finish(stage: ProcessFixture) -> None:
    handle = stage.run("sh", "-c", "(sleep 0.1; echo last) & echo first")
    assert stage.ended(handle).left == ()
    assert stage.all_output(handle) == b"first\nlast\n"


def test_orphans_are_reaped_while_the_command_runs_on(stage: ProcessFixture) -> None:
    handle = stage.run("sh", "-c", "for i in 1 2 3 4 5; do (sh -c 'exit 0' & sh -c 'exit 1' &) ; done; sleep 100")
    eventually(lambda: stage.look(handle).processes == 2)
    children = Path(f"/proc/{handle.shim_pid}/task/{handle.shim_pid}/children")
    eventually(lambda: children.read_text().split() == [str(handle.pid)])


def test_no_zombie_is_left(stage: ProcessFixture) -> None:
    handles = [stage.run("true") for _ in range(5)]
    for handle in handles:
        stage.ended(handle)
        assert look_at(handle.shim_pid) is None
        assert look_at(handle.pid) is None


def test_heartbeat_contains_resource_use(stage: ProcessFixture) -> None:
    handle = stage.run("sh", "-c", f"{sys.executable} -c 'while True: pass' & echo x; wait")
    stage.until_output(handle, b"x\n")
    eventually(lambda: (stage.look(handle).cpu_s or 0) > 0.1)
    look = stage.look(handle)
    assert look.alive
    assert look.end is None
    assert look.processes == 2
    assert (look.rss_bytes or 0) > 2**20
    assert look.output_bytes == 2
    assert look.last_output_at == pytest.approx(time.time(), abs=60)


def test_cpu_time_of_ended_processes_counts(stage: ProcessFixture) -> None:
    burn = f"{sys.executable} -c 'import time\nwhile time.process_time() < 0.3: pass'"
    handle = stage.run("sh", "-c", f"{burn}; ({burn} &); sleep 100")
    eventually(lambda: (stage.look(handle).cpu_s or 0) >= 0.55 and stage.look(handle).processes == 2)


def test_an_idle_process_shows_no_activity(stage: ProcessFixture) -> None:
    handle = stage.run("sleep", "100")
    assert stage.look(handle).last_output_at is None
    eventually(lambda: sleeps(handle.pid))  # it has begun to sleep
    assert stage.look(handle).cpu_s == stage.look(handle).cpu_s


def test_listening_ports_are_those_of_the_whole_group(stage: ProcessFixture) -> None:
    code = (
        "import socket, time; server = socket.create_server(('127.0.0.1', 0));"
        "print(server.getsockname()[1], flush=True); time.sleep(99)"
    )
    handle = stage.run("sh", "-c", f'{sys.executable} -c "{code}"; true')
    other = stage.run("sleep", "100")
    with socket.create_server(("127.0.0.1", 0)):
        stage.until_output(handle, b"\n")
        assert stage.ports((handle, other)) == {handle.id: (int(stage.all_output(handle)),), other.id: ()}


async def test_an_end_wakes_the_event_loop(stage: ProcessFixture) -> None:
    handle = await asyncio.to_thread(stage.run, "cat")
    descriptor = await asyncio.to_thread(stage.end_fd, handle)
    assert descriptor is not None
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await asyncio.to_thread(stage.close_input, handle)
        async with asyncio.timeout(30):
            await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    look = await asyncio.to_thread(stage.look, handle)
    assert look.end is not None
    assert look.end.code == 0
    assert await asyncio.to_thread(stage.end_fd, handle) is None


def test_wait_gives_up_in_time(stage: ProcessFixture) -> None:
    assert stage.wait(stage.run("sleep", "100"), 0.05) is None


def test_a_process_is_forgotten_only_when_it_is_over(stage: ProcessFixture) -> None:
    handle = stage.run("sleep", "100")
    with pytest.raises(ValueError, match="still running"):
        stage.forget(handle)
    stage.kill(handle, 0)
    stage.ended(handle)
    stage.forget(handle)
    assert stage.stored() == ()
    assert not stage.look(handle).alive
    assert stage.output(handle, 0, 10).data == b""


def test_hundred_megabytes_are_read_quickly_and_the_end_is_kept(stage: ProcessFixture) -> None:
    limits = ProcessLimits(spool_bytes=4_000_000)
    began = time.monotonic()
    handle = stage.run("sh", "-c", "head -c 100000000 /dev/zero; echo the end", limits=limits)
    end = stage.ended(handle)
    assert time.monotonic() - began < 20
    assert end.output_bytes == 100_000_008
    kept = stage.output(handle, 0, 10**9)
    assert kept.offset + len(kept.data) == kept.total == 100_000_008
    assert 2_000_000 <= len(kept.data) <= 4_000_000
    assert kept.kept_from == kept.offset == stage.tail(handle, 5).kept_from
    assert kept.data.endswith(b"\0the end\n")
    assert sum(path.stat().st_size for path in Path(handle.folder).glob("output.*")) <= 4_000_000


def test_every_byte_is_at_its_offset(stage: ProcessFixture) -> None:
    handle = stage.run("seq", "-w", "100000", limits=ProcessLimits(spool_bytes=100_000))
    stage.ended(handle)
    chunk = stage.output(handle, 0, 10**9)
    assert chunk.kept_from == chunk.offset >= 600_000
    assert chunk.total == 700_000
    first = chunk.offset // 7 + 1
    assert stage.output(handle, first * 7, 7).data == b"%06d\n" % (first + 1)


def test_output_that_cannot_be_stored_does_not_stop_the_command(stage: ProcessFixture) -> None:
    handle = stage.run("sh", "-c", "read x; seq -w 1000; exit 4", limits=ProcessLimits(spool_bytes=2000))
    Path(handle.folder, "output.1").mkdir()
    stage.write(handle, b"\n")
    end = stage.ended(handle)
    assert end.code == 4
    assert end.output_bytes == 1000
    assert end.dropped_bytes == 4000
    assert end.problem == "Is a directory"


def test_the_end_is_known_also_when_the_disk_is_full(tmp_path: Path) -> None:
    """The command fills a disk in its own mount namespace."""
    script = f"mount -t tmpfs -o size=256k none {tmp_path} && exec {sys.executable} -c '{FULL_DISK}' {tmp_path}"
    argv = ["unshare", "--mount", "sh", "-c", script]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("no right to mount here")
    assert done.stdout == "exited 6 True\n", done.stderr


FULL_DISK = """
import sys
from pathlib import Path
from tests.processes.stage import ProcessFixture
stage = ProcessFixture(Path(sys.argv[1]))
handle = stage.run("sh", "-c", "seq 200000; exit 6")
end = stage.ended(handle)
print(end.reason, end.code, end.dropped_bytes > 0 and "space" in end.problem)
""".replace("'", '"')


def test_a_shim_is_small_and_loads_nothing_heavy(stage: ProcessFixture) -> None:
    handle = stage.run("sleep", "100")
    status = dict(line.split(":\t") for line in Path(f"/proc/{handle.shim_pid}/status").read_text().splitlines())
    assert int(status["VmRSS"].split()[0]) < 16_000
    code = (
        f"import sys; sys.path.append({str(Path.cwd())!r}); import hermes.processes.shim.main;"
        "print([n for n in ('typing', 're', 'enum', 'json', 'pathlib', 'contextlib', 'signal') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-E", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_signal_is_not_an_end(stage: ProcessFixture) -> None:
    handle = stage.run("sh", "-c", "trap 'echo reloaded' HUP; echo ready; while :; do sleep 0.02; done")
    stage.until_output(handle, b"ready")
    assert stage.signal(handle, signal.SIGHUP)
    stage.until_output(handle, b"reloaded")
    assert stage.look(handle).alive


def test_terminal_signals_of_the_daemon_do_not_reach_the_process(stage: ProcessFixture) -> None:
    handle = stage.run("sleep", "100")
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        os.kill(handle.shim_pid, number)
    assert stage.look(handle).alive
    assert alive(handle.pid)


def test_heartbeats_of_all_take_one_pass(stage: ProcessFixture) -> None:
    handles: list[Handle] = [stage.run("sh", "-c", f"echo {number}; exec sleep 100") for number in range(10)]
    for handle in handles:
        stage.until_output(handle, b"\n")
    looks = stage.look_all(handles)
    assert [looks[handle.id].output_bytes for handle in handles] == [2] * 10
    assert all(look.alive and look.processes == 1 for look in looks.values())


def test_output_is_read_from_after_a_deleted_part(stage: ProcessFixture) -> None:
    limits = ProcessLimits(spool_bytes=2000)
    handle = stage.run("sh", "-c", "head -c 2500 /dev/zero | tr '\\0' x", limits=limits)
    stage.ended(handle)
    Path(handle.folder, "output.1").unlink()
    chunk = stage.output(handle, 0, 10_000)
    assert (chunk.offset, len(chunk.data), chunk.total) == (2000, 500, 2500)
    Path(handle.folder, "output.2").unlink()
    chunk = stage.output(handle, 0, 10_000)
    assert (chunk.data, chunk.total) == (b"", 0)


def test_foreign_files_in_a_folder_do_not_fail_heartbeats(stage: ProcessFixture) -> None:
    handles = [stage.run("sleep", "1000"), stage.run("sleep", "1000")]
    Path(handles[0].folder, "output.txt").touch()
    Path(handles[0].folder, "output.7").symlink_to("nowhere")
    Path(handles[1].folder, "output.0").unlink()
    assert [look.alive for look in stage.look_all(handles).values()] == [True, True]


def test_process_with_deleted_folder_is_lost(
    stage: ProcessFixture,
) -> None:
    handle = stage.run("sh", "-c", "echo said; read line")
    stage.until_output(handle, b"said")
    shutil.rmtree(handle.folder)
    assert stage.look(handle).alive
    assert stage.output(handle, 0, 100).data == b""
    assert stage.kill(handle, 0)
    assert stage.ended(handle).reason is EndReason.LOST
    assert not alive(handle.pid)


def test_a_process_can_be_killed_when_nothing_can_be_written(stage: ProcessFixture) -> None:
    handle = stage.run("sleep", "1000")
    Path(handle.folder, "grace").mkdir()  # as good as a full disk
    assert stage.kill(handle, 0)
    assert stage.ended(handle).reason is EndReason.KILLED


def test_process_adopted_during_a_reap_is_ended(stage: ProcessFixture) -> None:
    """A leftover of the ended command ends during the inspection, and leaves a process in its own session."""
    mark = f"1{time.monotonic_ns()}"
    end = stage.ended(stage.run("sh", "-c", f"(sleep 0.2; setsid sleep {mark} & sleep 0.2) & exit 3"))
    assert end.code == 3
    assert with_argument(mark) == []


def test_processes_of_two_tests_never_share_an_id(stage: ProcessFixture, tmp_path: Path) -> None:
    other = ProcessFixture(tmp_path / "other")
    mine, theirs = stage.run("sleep", "60"), other.run("sleep", "60")
    try:
        kill_marked(theirs.id)
        assert other.ended(theirs).signal == signal.SIGKILL
        assert alive(mine.pid)
    finally:
        other.clear()
