"""What a tool must not be able to do, against the real daemon with a model that always tries."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hermes.cli.client import AdminError
from tests.support.daemon_process import DaemonProcess
from tests.support.scripted_model import ScriptedModel, calling
from tests.support.waiting import eventually


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


UNASKED = "approvals: {mode: 'off'}\n"
_REACH = """
import http.client, os, pathlib, socket, sys, time
home, result, way = pathlib.Path(HOME), pathlib.Path(sys.argv[1]), sys.argv[2]
client = http.client.HTTPConnection("x")
client.sock = socket.socket(socket.AF_UNIX)
client.sock.connect(str(home / "hermes.sock"))
if way == "connect-fork-exit":
    first = os.getpid()
    if os.fork():
        os._exit(0)
    os.setsid()
    while os.getppid() == first:
        time.sleep(0.01)
headers = {"Content-Type": "application/json"}
if way != "no-token":
    headers["Authorization"] = "Bearer " + (home / "admin.token").read_text().strip()
client.request("POST", "/stop", "{}", headers)
answer = client.getresponse()
draft = result.with_name("draft")
draft.write_text(f"{answer.status} {answer.read().decode()}")
draft.rename(result)
"""


@pytest.mark.parametrize("way", ["no-token", "token", "setsid", "connect-fork-exit"])
def test_a_tool_cannot_use_the_admin_socket(model: ScriptedModel, tmp_path: Path, way: str) -> None:
    """Not even with the token in hand, and however it leaves its parents."""
    script, result = tmp_path / "reach.py", tmp_path / "result"
    with DaemonProcess(config=model.config + UNASKED) as daemon:
        script.write_text(_REACH.replace("HOME", repr(str(daemon.home))))
        start = "setsid -f " if way == "setsid" else ""
        daemon.ask(f"run {start}{sys.executable} {script} {result} {way}", session="s")
        eventually(result.exists, within_s=10)
        status, _, body = result.read_text().partition(" ")
        refusals = {"from_a_tool"}
        if way == "connect-fork-exit":  # it depends on whether the first process is reaped by then
            refusals.add("unknown_peer")
        assert status == "403"
        assert json.loads(body)["error"]["code"] in refusals
        assert daemon.ask("say still here", session="s").text == "still here"


def test_a_background_command_of_an_earlier_daemon_cannot_use_the_admin_socket(
    model: ScriptedModel, tmp_path: Path
) -> None:
    script, result, go = tmp_path / "reach.py", tmp_path / "result", tmp_path / "go"
    with DaemonProcess(config=model.config + UNASKED) as daemon:
        script.write_text(_REACH.replace("HOME", repr(str(daemon.home))))
        command = f"until [ -e {go} ]; do sleep 0.05; done; {sys.executable} {script} {result} token"
        call = calling(10, ("terminal", {"command": command, "background": True}))
        replies = iter([call])
        model.on_request = lambda body: next(replies, None)
        daemon.ask("go", session="s")
        daemon.kill()
        daemon.start()
        go.touch()
        eventually(result.exists, within_s=10)
        assert "from_a_tool" in result.read_text()


def test_a_request_without_the_admin_token_is_refused(model: ScriptedModel) -> None:
    with DaemonProcess(config=model.config) as daemon:
        assert stat.S_IMODE((daemon.home / "admin.token").stat().st_mode) == 0o600
        assert daemon.admin.info()["pid"]
        (daemon.home / "admin.token").write_text("guessed")
        with pytest.raises(AdminError) as refused:
            daemon.admin.info()
        assert (refused.value.status, refused.value.code) == (401, "invalid_admin_token")


def test_orphans_of_tools_are_reaped(model: ScriptedModel) -> None:
    """They come to the daemon, and none of them stays in the process table."""
    with DaemonProcess(config=model.config) as daemon:
        assert daemon.process is not None
        me = psutil.Process(daemon.process.pid)
        answer = daemon.ask("run setsid -f sleep 0.2; (sleep 0.1 &); echo started", session="s").text
        assert "started" in answer
        eventually(lambda: not me.children())


@pytest.mark.parametrize("restart", [False, True])
def test_a_command_is_judged_in_the_directory_it_runs_in(model: ScriptedModel, tmp_path: Path, restart: bool) -> None:
    home = tmp_path / "person"
    home.mkdir()
    (home / "precious").write_text("kept")
    environ = {"HOME": str(home)}
    config = model.config + f"terminal: {{cwd: {tmp_path}}}\napi: {{allow_yolo: true}}\n"
    with DaemonProcess(config=config, environ=environ) as daemon:
        daemon.request("POST", "/api/sessions/s/commands", {"text": "/yolo on"})
        daemon.ask("say hello", session="s")
        daemon.request("POST", "/api/sessions/s/commands", {"text": "/yolo on"})
        if restart:
            daemon.ask(f"run cd {home}", session="s")
            daemon.kill()
            daemon.start()
            answer = daemon.ask("run rm -rf *", session="s").text
        else:
            both = [("terminal", {"command": f"cd {home}"}), ("terminal", {"command": "rm -rf *"})]
            replies = iter([calling(10, *both)])
            model.on_request = lambda body: next(replies, None)
            answer = daemon.ask("go", session="s").text
        assert "Not run" in answer
        assert (home / "precious").read_text() == "kept"


def test_a_job_in_a_group_of_its_own_ends_with_its_command(model: ScriptedModel, tmp_path: Path) -> None:
    ticks = tmp_path / "ticks"
    with DaemonProcess(config=model.config) as daemon:
        ticking = f"set -m; (while sleep 0.2; do echo tick >> {ticks}; done)"
        command = f"{ticking} & until [ -e {ticks} ]; do sleep 0.05; done; echo over"
        answer = daemon.ask(f"run {command}", session="s").text
        assert "over" in answer
        counted = ticks.read_text().count("tick")
        daemon.ask("run sleep 1", session="s")
        assert ticks.read_text().count("tick") == counted


def test_a_tool_reaches_neither_the_daemons_port_nor_its_files(model: ScriptedModel) -> None:
    """The port is whichever was free."""
    with DaemonProcess(config=model.config) as daemon:
        (daemon.home / "telegram.token").write_text("1234:token")
        for command in (f"curl -s {daemon.address}/api/sessions", f"cat {daemon.home}/telegram.token"):
            assert "Not run" in daemon.ask(f"run {command}", session="s").text
        for path in ("telegram.token", "admin.token", "service.env"):
            call = calling(10, ("read_file", {"path": str(daemon.home / path)}))
            replies = iter([call])
            model.on_request = lambda body, replies=replies: next(replies, None)  # type: ignore[misc]
            assert "secret of Hermes" in daemon.ask("go", session="s").text
