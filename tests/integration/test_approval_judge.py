"""Approvals by a model, in the real daemon: what it approves runs and is recorded, the rest waits for the person."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.model_server import DONE, Reply, delta, stream, usage
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)
_ID = re.compile(r"Question ([0-9a-f]+)\.")


class Judge:
    """The model `cheap`, which approves what is in a directory named build."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, body: dict[str, Any]) -> Reply | None:
        if body["model"] != "cheap":
            return None
        self.asked += 1
        question = str(body["messages"][-1]["content"])
        found = _ID.search(question)
        assert found is not None
        safe = "rm -rf build<" in question
        said = {"id": found[1], "verdict": "approve" if safe else "ask", "confidence": 0.95, "reason": "I looked."}
        return stream(delta(content=json.dumps(said)), delta("stop"), usage(300, 30), DONE)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        model.on_request = Judge()
        yield model


def folder(home: Path, name: str) -> Path:
    made = home / name
    made.mkdir(parents=True)
    (made / "a.o").touch()
    return made


def started(model: ScriptedModel, place: Path, judge: str = "cheap") -> DaemonProcess:
    config = f'{model.config}sandbox: {{mode: "off"}}\nterminal: {{cwd: {place}}}\n'
    environ = {"HERMES_AUXILIARY_APPROVAL": judge, "HERMES_AUXILIARY_TITLE": "none"}
    return DaemonProcess(config=config, environ=environ)


def test_approved_command_runs_and_the_rest_waits(model: ScriptedModel, tmp_path: Path) -> None:
    build, source = folder(tmp_path, "build"), folder(tmp_path, "src")
    with started(model, tmp_path) as daemon:
        assert "results:" in daemon.ask("run rm -rf build", "s").text
        assert not build.exists()
        trace = daemon.hermes("trace", "s").stdout
        assert "judged" in trace
        assert "confidence 0.95: I looked." in trace
        usage_of_session = daemon.request("GET", "/api/sessions/s").json()["session"]["usage"]
        assert usage_of_session["prompt_tokens"] >= 300
        daemon.ask("run rm -rf src", "t")
        eventually(lambda: "waited for an answer" in daemon.hermes("why", "t").stdout)
        assert source.exists()


def test_without_the_setting_nothing_is_judged(model: ScriptedModel, tmp_path: Path) -> None:
    build = folder(tmp_path, "build")
    with started(model, tmp_path, judge="") as daemon:
        daemon.ask("run rm -rf build", "s")
        eventually(lambda: "waited for an answer" in daemon.hermes("why", "s").stdout)
        assert build.exists()
    assert isinstance(model.on_request, Judge)
    assert model.on_request.asked == 0
