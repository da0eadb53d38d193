"""The daemon as an operator knows it: signals, exit codes, a second one, a full disk, a bad configuration."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from hermes.storage.lmdb_reader import open_reader
from hermes.supervision.boot import STOPPED
from tests.support.daemon_process import DaemonProcess
from tests.support.scripted_model import ScriptedModel
from tests.support.service_manager import ServiceManager
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess() as daemon:
        yield daemon


def test_sigterm_and_sigint_end_it_cleanly(daemon: DaemonProcess) -> None:
    assert daemon.terminate() == 0
    daemon.start()
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGINT)
    assert daemon.process.wait(20) == 0


def test_the_hint_about_a_second_ctrl_c_is_for_the_screen_and_not_for_the_record(daemon: DaemonProcess) -> None:
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGINT)
    assert daemon.process.wait(20) == 0
    assert "hermes: stopping; press Ctrl-C again to force the exit.\n" in daemon.stderr()
    with open_reader(daemon.home / "store") as reader:
        assert reader is not None
        assert (reader.fact(STOPPED) or b"").endswith(b"interrupted from the terminal")


def test_second_daemon_on_the_same_home_gets_the_pid_of_the_first(daemon: DaemonProcess) -> None:
    assert daemon.process is not None
    second = daemon.hermes("daemon")
    assert second.returncode == 75
    assert str(daemon.process.pid) in second.stderr
    assert "Traceback" not in second.stderr
    assert daemon.ask("still here?").status == 200


def test_a_port_that_is_taken_is_said_plainly() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        holder = DaemonProcess(environ={"HERMES_API_PORT": str(port)})
        try:
            done = holder.hermes("daemon")
        finally:
            holder.__exit__(None, None, None)
    assert done.returncode == 75
    assert str(port) in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("api: {prot: 1}\n", "did you mean"),
        ("api:\n  port: many\n", ":2:"),
        ("model: {provider: openai}\n", "model.name"),
        ("\tapi: 1\n", ":1:"),
    ],
)
def test_a_bad_configuration_is_exit_78_with_what_to_change(config: str, said: str) -> None:
    holder = DaemonProcess(config=config, environ={"OPENAI_API_KEY": "sk-not-a-real-key-0000"})
    try:
        done = holder.hermes("daemon")
        assert not (holder.home / "store").exists()
    finally:
        holder.__exit__(None, None, None)
    assert done.returncode == 78
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_home_that_another_program_made_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_text("theirs")
    done = DaemonProcess(home=tmp_path).hermes("daemon")
    assert done.returncode == 78
    assert "state.db" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["state.db"]


def test_a_key_that_is_too_short_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    other = DaemonProcess(home=tmp_path / "home", environ={"HERMES_API_KEY": "short"})
    done = other.hermes("daemon")
    assert done.returncode == 78
    assert "HERMES_API_KEY has fewer than" in done.stderr
    assert list(other.home.iterdir()) == []


def test_a_store_that_has_vanished_is_refused_and_a_backup_brings_it_back(
    daemon: DaemonProcess, tmp_path: Path
) -> None:
    daemon.ask("!echo one", "A")
    store, backup = daemon.home / "store", tmp_path / "backup"
    assert daemon.hermes("storage", "backup", str(backup)).returncode == 0
    daemon.terminate()
    (store / "data.mdb").write_bytes(b"")
    for command in (("daemon",), ("storage", "stats")):
        done = daemon.hermes(*command)
        assert done.returncode == 78
        assert "the store of this home is empty" in done.stderr
    shutil.rmtree(store)
    assert "the store of this home is missing" in daemon.hermes("daemon").stderr
    shutil.copytree(backup, store)
    daemon.start()
    assert daemon.ask("!count", "A").text == "I was shown 3 messages."


def test_everything_it_writes_is_private_to_its_owner(daemon: DaemonProcess) -> None:
    daemon.ask("hello")
    for path in (daemon.home, *daemon.home.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_sighup_reloads_what_can_be_reloaded_and_a_bad_file_changes_nothing(daemon: DaemonProcess) -> None:
    assert daemon.process is not None
    config = daemon.home / "config.yaml"
    config.write_text("sessions: {max_queue: 7}\napi: {max_connections: 9}\n")
    daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: "sessions.max_queue" in daemon.stderr())
    eventually(lambda: "need a restart: api.max_connections" in daemon.stderr())
    config.write_text("nonsense: 1\n")
    daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: "the old one stays" in daemon.stderr())
    assert daemon.ask("still here?").status == 200


def test_sigusr1_writes_every_actor_task_and_thread_to_the_log(daemon: DaemonProcess) -> None:
    assert daemon.process is not None
    daemon.ask("hello", session="seen-in-the-log")
    daemon.process.send_signal(signal.SIGUSR1)
    log = daemon.home / "logs" / "hermes.log"
    eventually(lambda: "thread MainThread" in log.read_text())
    assert "session seen-in-the-log" in log.read_text()
    assert "journal" in log.read_text()
    eventually(lambda: "tasks and threads was written to the log" in daemon.stderr())
    assert "thread MainThread" not in daemon.stderr()


def test_a_flood_of_connections_leaves_descriptors_for_the_rest_and_few_lines_in_the_log() -> None:
    config = "api: {max_connections: 4000, max_connections_per_peer: 4000}\n"
    limited = ("sh", "-c", 'ulimit -Sn 100; ulimit -Hn 300; exec "$@"', "sh")
    with DaemonProcess(config=config, prefix=limited) as daemon, ExitStack() as stack:
        assert daemon.process is not None
        eventually(lambda: "api.max_connections is 4000, but this process can open 300 files" in daemon.stderr())
        host, port = daemon.address.removeprefix("http://").split(":")
        for _ in range(400):
            stack.enter_context(socket.create_connection((host, int(port))))
        assert daemon.hermes("ps").returncode == 0
        assert daemon.stderr().count("\n") < 20
        assert "Traceback" not in daemon.stderr()


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGHUP])
def test_more_signals_during_the_stop_change_nothing(second: signal.Signals) -> None:
    with DaemonProcess(config="shutdown: {drain_s: 0.2}\n") as daemon, ThreadPoolExecutor(1) as pool:
        assert daemon.process is not None
        waiting = pool.submit(daemon.ask, "!slow 60", "s")
        eventually(lambda: daemon.admin.get("/api/sessions")["sessions"])
        daemon.process.send_signal(signal.SIGTERM)
        eventually(lambda: "stopping" in daemon.stderr())
        while daemon.process.poll() is None:
            daemon.process.send_signal(second)
            time.sleep(0.05)
        assert daemon.process.returncode == 0
        assert waiting.result().status == 503


def test_a_daemon_that_is_just_starting_is_stopped_too(daemon: DaemonProcess) -> None:
    assert daemon.terminate() == 0
    daemon.begin()
    eventually(
        lambda: (daemon.home / "hermes.lock").read_text().strip() == str(daemon.process and daemon.process.pid)
    )
    assert daemon.hermes("stop").returncode == 0
    assert daemon.process is not None
    assert daemon.process.wait(20) == 0


def test_starts_that_were_refused_are_no_crashes(daemon: DaemonProcess) -> None:
    daemon.kill()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for _ in range(2):
            elsewhere = ("env", f"HERMES_API_PORT={taken.getsockname()[1]}")
            assert daemon.hermes("daemon", prefix=elsewhere).returncode == 75
    daemon.start({"HERMES_RESUME_BOOT_LOOP_STARTS": "1"})
    eventually(lambda: "the last daemon did not stop cleanly" in daemon.stderr())
    assert "start number" not in daemon.stderr()


def test_a_removed_lock_file_lets_no_second_daemon_in(daemon: DaemonProcess) -> None:
    (daemon.home / "hermes.lock").unlink()
    assert daemon.hermes("daemon").returncode == 75
    assert daemon.ask("still here?").status == 200


def test_systemd_gets_ready_stopping_and_watchdog_messages(tmp_path: Path) -> None:
    with ServiceManager(tmp_path / "n") as manager:
        environ = {"NOTIFY_SOCKET": str(manager.path), "WATCHDOG_USEC": "400000"}
        with DaemonProcess(environ=environ) as daemon:
            eventually(lambda: {"WATCHDOG=1", "READY=1"} <= set(manager.heard))
            assert daemon.terminate() == 0
            eventually(lambda: "STOPPING=1" in manager.heard)


def test_a_stop_waits_for_a_turn_of_several_steps(tmp_path: Path) -> None:
    """Between two steps nothing is in flight, for a moment. Here the command ends when the stop has begun."""
    begun, stopping = tmp_path / "begun", tmp_path / "stopping"

    def answer_slowly(body: dict[str, Any]) -> None:
        if body["messages"][-1]["role"] == "tool":
            time.sleep(2)

    with ScriptedModel() as model, ThreadPoolExecutor(1) as pool:
        model.on_request = answer_slowly
        with DaemonProcess(config=f"{model.config}shutdown: {{drain_s: 40, timeout_s: 60}}\n") as daemon:
            assert daemon.process is not None
            command = f"run touch {begun}; until [ -e {stopping} ]; do sleep 0.05; done; echo soon"
            asked = pool.submit(daemon.ask, command, "s")
            eventually(begun.exists)
            daemon.process.send_signal(signal.SIGTERM)
            eventually(lambda: "stopping" in daemon.stderr())
            stopping.touch()
            assert "soon" in asked.result(60).text
            assert daemon.process.wait(60) == 0
            assert "did not finish" not in daemon.stderr()


@pytest.mark.parametrize("patient", [True, False])
def test_a_stop_takes_longer_only_where_that_is_granted_and_while_turns_end(tmp_path: Path, patient: bool) -> None:
    """Three turns, of which each ends within the drain of the one before.

    The second one ends when the drain from the start of the stop is over, the third when that from the end of the
    first one is, too.
    """
    ends_s = (4, 8.5, 13.5) if patient else (4, 11)

    def waits_for(file: Path) -> str:
        return (
            "!tool terminal " + json.dumps({"command": f"until [ -e {file} ]; do sleep 0.05; done"}) + "\n!echo over"
        )

    with ServiceManager(tmp_path / "n") as manager, ThreadPoolExecutor(3) as pool:
        environ = {"NOTIFY_SOCKET": str(manager.path)} if patient else {}
        with DaemonProcess(config="shutdown: {drain_s: 8, timeout_s: 14}\n", environ=environ) as daemon:
            asked = [pool.submit(daemon.ask, waits_for(tmp_path / f"{n}"), f"s{n}") for n in range(3)]
            eventually(lambda: daemon.hermes("sessions", "--json").stdout.count('"running"') == 3)
            assert daemon.process is not None
            daemon.process.send_signal(signal.SIGTERM)
            eventually(lambda: "stopping for a shutdown" in daemon.stderr())
            began = time.monotonic()
            for number, end_s in enumerate(ends_s):
                with suppress(subprocess.TimeoutExpired):
                    daemon.process.wait(began + end_s - time.monotonic())
                (tmp_path / f"{number}").touch()
            assert daemon.process.wait(20) == 0
            ended = [answer.status == 200 for answer in (each.result(20) for each in asked)]
            assert ended == [True, patient, patient]
    assert ("EXTEND_TIMEOUT_USEC=15000000" in manager.heard) is patient


def test_no_secret_and_no_text_reaches_the_log(daemon: DaemonProcess) -> None:
    for text in ("canary-text-1", "!fail auth canary-text-2"):
        daemon.ask(text, session="s")
    daemon.request("GET", "/api/sessions", Authorization="Bearer canary-key-000000000000")
    assert daemon.terminate() == 0
    logs = daemon.stderr() + "".join(path.read_text() for path in (daemon.home / "logs").iterdir())
    assert "canary" not in logs
    assert daemon.key not in logs


def test_the_command_line_shows_what_is_going_on(daemon: DaemonProcess) -> None:
    daemon.ask("remember me", session="shown")
    assert "shown" in daemon.hermes("ps", "--actors").stdout
    shown = daemon.hermes("show", "shown").stdout
    assert "remember me" in shown
    assert "idle" in daemon.hermes("why", "shown").stdout
    assert '"shown"' in daemon.hermes("ps", "--sessions", "--json").stdout
    assert daemon.hermes("why", "nobody").returncode != 0
    assert daemon.hermes("storage", "verify").returncode == 0
    assert daemon.hermes("chat", "-z", "!echo over the socket").stdout.strip() == "over the socket"
    assert daemon.hermes("stop").returncode == 0
    assert "no daemon runs" in daemon.hermes("ps").stderr


def test_a_hot_backup_under_load_is_whole_and_can_be_started_from(daemon: DaemonProcess, tmp_path: Path) -> None:
    done = threading.Event()

    def load() -> int:
        count = 0
        while not done.is_set():
            count += daemon.ask(f"m{count}", session="loaded").status == 200
        return count

    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(load)
        eventually(lambda: "loaded" in daemon.hermes("ps", "--actors").stdout)
        backed_up = daemon.hermes("storage", "backup", str(tmp_path / "backup"))
        done.set()
        assert loading.result() > 0
    assert backed_up.returncode == 0, backed_up.stderr
    assert daemon.terminate() == 0
    shutil.rmtree(daemon.home / "store")
    shutil.copytree(tmp_path / "backup", daemon.home / "store")
    daemon.start()
    assert "m0" in daemon.ask("!history", session="loaded").text
    assert daemon.hermes("storage", "verify").returncode == 0


def test_chat_starts_a_daemon_inside_itself_when_none_runs(daemon: DaemonProcess) -> None:
    assert daemon.terminate() == 0
    first = daemon.hermes("chat", stdin="!echo one\n!echo two\n")
    assert "one" in first.stdout
    assert "two" in first.stdout
    daemon.start()
    sessions = daemon.admin.get("/api/sessions")["sessions"]
    assert sessions[0]["turns"] == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_refuses_writes_and_recovers_when_there_is_space(tmp_path: Path) -> None:
    script = f"""
import os, sys
from pathlib import Path
from hermes.storage.lmdb_reader import open_reader
from hermes.supervision.boot import STOPPED
from tests.support.daemon_process import DaemonProcess
from tests.support.waiting import eventually
from tests.support.scripted_model import ScriptedModel
home = Path({str(tmp_path)!r}) / "m"
home.mkdir(mode=0o700)
assert os.system(f"mount -t tmpfs -o size=24m,mode=700 tmpfs {{home}}") == 0
with DaemonProcess(home=home, config="compression: {{enabled: false}}\\n") as daemon:
    assert daemon.ask("before", session="s").status == 200
    filler = home.parent / "m" / "logs" / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 65536)
        except OSError:
            pass
    for number in range(2000):
        refused = daemon.ask(f"number {{number}} " + "x" * 5000, session="s")
        if refused.status != 200:
            break
    assert refused.json()["error"]["code"] == "storage_full", refused.body
    assert "Retry-After" in refused.headers
    assert daemon.request("GET", "/api/sessions/s/messages").status == 200
    assert daemon.admin.get("/sessions/s")["session"]["id"] == "s"
    eventually(lambda: daemon.request("GET", "/health/ready").status == 503)
    filler.unlink()
    eventually(lambda: daemon.ask("after", session="s").status == 200)
    eventually(lambda: daemon.request("GET", "/health/ready").status == 200)
    history = daemon.ask("!history", session="s").text
    assert "before" in history and "after" in history and f"number {{number - 1}} " in history
    assert f"number {{number}} " not in history
    assert daemon.terminate() == 0
    daemon.start()
    assert daemon.hermes("storage", "verify").returncode == 0
print("fine")
"""
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=100
    )
    assert "fine" in done.stdout, done.stdout + done.stderr[-3000:]
