"""Files between a person on Slack and the real daemon, both ways."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.domain.text.fence import without_fences
from tests.support.daemon_process import DaemonProcess
from tests.support.pictures import PNG
from tests.support.scripted_model import ScriptedModel
from tests.support.slack_server import APP_TOKEN, BOT_TOKEN, Fault, SlackServer
from tests.support.slack_state import BOT_USER

pytestmark = pytest.mark.timeout(120)
ANN, STRANGER = "UANN", "USTRANGER"
ME = f"<@{BOT_USER}>"


@pytest.fixture
def server() -> Iterator[SlackServer]:
    with SlackServer() as server:
        yield server


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture
def daemon(server: SlackServer, model: ScriptedModel, tmp_path: Path) -> Iterator[DaemonProcess]:
    slack = f'enabled: true, base_url: "{server.base_url}", allowed_users: ["{ANN}"]'
    config = f'{model.config}slack: {{{slack}}}\nterminal: {{cwd: "{tmp_path}"}}\nmedia: {{max_file_mb: 1}}\n'
    secrets = {"SLACK_BOT_TOKEN": BOT_TOKEN, "SLACK_APP_TOKEN": APP_TOKEN}
    with DaemonProcess(config=config, environ={**secrets, "HERMES_MODEL_VISION": "always"}) as daemon:
        yield daemon


def test_what_a_person_sends_is_seen_kept_or_said_to_be_missing(
    server: SlackServer, model: ScriptedModel, daemon: DaemonProcess
) -> None:
    server.share("D2", STRANGER, ("secret.png", PNG, "image/png"))
    files = [("cat.png", PNG, "image/png"), ("huge.bin", b"1" * (1 << 20), "application/zip")]
    files.append(("huger.bin", b"1" * ((1 << 20) + 1), "application/zip"))
    server.share("D1", ANN, *files, text="what is this?")
    server.until(lambda: len(server.replies("D1")) == 1)
    words, picture = model.requests[-1]["messages"][-1]["content"]
    assert picture["image_url"]["url"] == "data:image/png;base64," + base64.b64encode(PNG).decode()
    lines = without_fences(words["text"]).splitlines()
    assert lines[0] == "what is this?"
    assert lines[1].startswith("[picture (cat.png, image/png, 1 KB); stored as ")
    assert lines[2].startswith("[file (huge.bin, application/zip, 1.0 MB); stored as ")
    assert "could not be fetched: files larger than 1.0 MB are not accepted" in lines[3]
    [scope] = (daemon.home / "media").iterdir()
    assert len(list(scope.iterdir())) == 2  # nothing of the stranger's

    server.scopes.discard("files:read")
    server.share("D1", ANN, ("memo.m4a", b"sound", "audio/mp4"))
    server.until(lambda: len(server.replies("D1")) == 2)
    assert "add the scope files:read" in model.requests[-1]["messages"][-1]["content"]
    assert BOT_TOKEN not in daemon.stderr()


def test_the_agent_sends_a_file_to_the_thread_once_and_says_when_it_cannot(
    server: SlackServer, daemon: DaemonProcess, tmp_path: Path
) -> None:
    (tmp_path / "report.txt").write_text("all is well")
    wish = f"{ME} call send_file {json.dumps({'path': 'report.txt'})}"
    server.fail("files.completeUploadExternal", Fault(lost=True))
    asked = server.say("C1", ANN, wish)
    server.until(lambda: any("results:" in text for text in server.replies("C1")))
    [file] = server.files("C1")
    assert (file.name, file.data) == ("report.txt", b"all is well")
    assert {each.thread for each in server.history("C1") if each.from_bot} == {asked}
    assert server.count("files.completeUploadExternal") == 1

    server.scopes.discard("files:write")
    server.say("C1", ANN, wish)
    server.until(lambda: any("report.txt could not be sent" in text for text in server.replies("C1")))
    assert any("lacks the scope files:write" in text for text in server.replies("C1"))
    assert server.violations == []
