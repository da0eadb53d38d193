"""Goals in the real daemon: turns until the judge is content, limits, a pause, and a kill in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.model_server import Reply
from tests.support.scripted_model import ScriptedModel, answered
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)


class Judged:
    """A model that judges: the goal is reached after so many verdicts."""

    def __init__(self, model: ScriptedModel, verdicts: int) -> None:
        self.verdicts = verdicts
        self.seen: set[str] = set()  # conversations that were judged, each once
        model.on_request = self._reply

    def _reply(self, body: dict[str, Any]) -> Reply | None:
        text = str(body["messages"][-1]["content"])
        if "You judge whether" not in text:
            return None
        self.seen.add(text.partition(">")[2].rpartition("<")[0])
        done = len(self.seen) >= self.verdicts
        return answered(json.dumps({"done": done, "note": f"verdict {len(self.seen)}"}))


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


def command(daemon: DaemonProcess, text: str) -> str:
    found: dict[str, Any] = daemon.admin.post("/api/sessions/s/commands", {"text": text})
    return str(found["text"])


def ended(daemon: DaemonProcess, words: str) -> str:
    return str(eventually(lambda: words in (said := command(daemon, "/goal")) and said))


def turns(daemon: DaemonProcess) -> int:
    return int(daemon.admin.get("/api/sessions/s")["session"]["turns"])


@pytest.mark.parametrize("point", ["", "child: about to report", "before GoalChanged"])
def test_goal_is_pursued_until_it_is_reached(model: ScriptedModel, point: str) -> None:
    Judged(model, 3)
    with DaemonProcess(config=model.config) as daemon:
        daemon.ask("say hello", "s")
        assert "The goal is set" in command(daemon, "/goal say step")
        if point:
            eventually(lambda: turns(daemon) >= 2)
            daemon.kill()
            daemon.start({"HERMES_TEST_CRASH": point})
            assert daemon.process is not None
            daemon.process.wait(30)
            daemon.kill()
            daemon.start({"HERMES_TEST_CRASH": ""})
        assert "verdict 3" in ended(daemon, "is reached")
        assert turns(daemon) == 4  # the first message, the goal, and two turns of its own


def test_goal_stops_at_its_limit_and_can_be_paused_and_cleared(model: ScriptedModel) -> None:
    Judged(model, 1000)
    with DaemonProcess(config=model.config, environ={"HERMES_GOALS_MAX_TURNS": "2"}) as daemon:
        daemon.ask("say hello", "s")
        command(daemon, "/goal say step")
        assert "Turns of its own: 2 of 2" in ended(daemon, "stopped at its limit")
        assert turns(daemon) == 4
        assert "is pursued" in command(daemon, "/goal resume")
        command(daemon, "/goal pause")
        assert "is paused" in command(daemon, "/goal")
        assert "cleared" in command(daemon, "/goal clear")
        assert "has no goal" in command(daemon, "/goal status")
        first = daemon.admin.post("/api/commands", {"text": "/goal say step"})  # before the first message
        assert daemon.admin.get(f"/api/sessions/{first['session_id']}")["session"]["id"] == first["session_id"]
