"""What a tool must not be able to do, against the real daemon with a model that always tries."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon_process import DaemonProcess
from tests.scripted_model import ScriptedModel, calling


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


def test_a_tool_cannot_reach_the_admin_socket(model: ScriptedModel, tmp_path: Path) -> None:
    script = tmp_path / "reach.py"
    with DaemonProcess(config=model.config) as daemon:
        script.write_text(
            "import http.client, socket\n"
            "c = http.client.HTTPConnection('x')\n"
            "c.sock = socket.socket(socket.AF_UNIX)\n"
            f"c.sock.connect({str(daemon.home / 'hermes.sock')!r})\n"
            "c.request('POST', '/stop', '{}', {'Content-Type': 'application/json'})\n"
            "print(c.getresponse().status)\n"
        )
        answer = daemon.ask(f"run {sys.executable} {script}", session="s").text
        assert "403" in answer
        assert daemon.ask("say still here", session="s").text == "still here"


@pytest.mark.parametrize("restart", [False, True])
def test_a_command_is_judged_in_the_directory_it_runs_in(model: ScriptedModel, tmp_path: Path, restart: bool) -> None:
    home = tmp_path / "person"
    home.mkdir()
    (home / "precious").write_text("kept")
    environ = {"HOME": str(home)}
    config = model.config + f"terminal: {{cwd: {tmp_path}}}\n"
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
