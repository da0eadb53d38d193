"""Files between a person on Telegram and the real daemon, both ways, with crashes in between."""

from __future__ import annotations

import base64
import json
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hermes.domain.text.fence import without_fences
from tests.sandbox.boxes import working_sandbox
from tests.support.daemon_process import DaemonProcess
from tests.support.free_port import free_port
from tests.support.pictures import JPEG
from tests.support.scripted_model import ScriptedModel
from tests.support.telegram_server import TOKEN, Fault, TelegramServer
from tests.support.transcription_server import TranscriptionServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)
ANN = 7
STRANGER = 8
GROUP = -5
PICTURE: dict[str, Any] = {"photo": [{"file_id": "cat", "width": 800, "height": 600, "file_size": len(JPEG)}]}


@pytest.fixture
def server() -> Iterator[TelegramServer]:
    with TelegramServer() as server:
        server.has_file("cat", JPEG)
        yield server


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


def a_daemon(server: TelegramServer, model: ScriptedModel, more: str = "", **environ: str) -> DaemonProcess:
    telegram = f'enabled: true, base_url: "{server.base_url}", allowed_users: ["{ANN}"]'
    config = f"{model.config}telegram: {{{telegram}}}\n{more}"
    return DaemonProcess(config=config, environ={"TELEGRAM_BOT_TOKEN": TOKEN, **environ})


def answers(server: TelegramServer, number: int) -> None:
    """Waits until the bot has said so much, and all of it."""
    server.until(lambda: len(server.replies(ANN)) == number and not any("▌" in text for text in server.replies(ANN)))


def stored(daemon: DaemonProcess) -> list[Path]:
    return [path for path in (daemon.home / "media").glob("*/*") if path.is_file()]


def test_a_picture_is_shown_to_a_model_that_sees_and_named_to_one_that_does_not(
    server: TelegramServer, model: ScriptedModel
) -> None:
    with a_daemon(server, model, HERMES_MODEL_VISION="always") as daemon:
        server.say(ANN, ANN, "", **PICTURE, caption="what is this?")
        answers(server, 1)
        words, picture = model.requests[-1]["messages"][-1]["content"]
        assert picture["image_url"]["url"] == "data:image/jpeg;base64," + base64.b64encode(JPEG).decode()
        [file] = stored(daemon)
        assert file.read_bytes() == JPEG
        assert stat.S_IMODE(file.parent.parent.stat().st_mode) == 0o700
        daemon.terminate()
        daemon.start({"HERMES_MODEL_VISION": "auto"})
        server.say(ANN, ANN, "and now?")
        answers(server, 2)
        said = [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "user"]
        assert said[0] == words["text"] == f"what is this?\n[picture (image/jpeg, 1 KB); stored as {file}]"


def test_a_voice_that_is_being_written_down_holds_up_no_command(server: TelegramServer, model: ScriptedModel) -> None:
    server.has_file("hello", b"OggS")
    with TranscriptionServer() as listener:
        listener.goes_on.clear()
        more = f'transcription: {{base_url: "{listener.base_url}"}}\n'
        with a_daemon(server, model, more):
            server.say(ANN, ANN, "", voice={"file_id": "hello", "duration": 2})
            server.until(lambda: bool(listener.asked))
            server.say(ANN, ANN, "say and this")
            server.say(ANN, ANN, "/status")
            server.until(lambda: len(server.replies(ANN)) == 1)
            assert model.requests == []
            listener.goes_on.set()
            answers(server, 3)
            assert "hello from a voice" in server.replies(ANN)[1]
            assert server.replies(ANN)[2] == "and this"


def test_a_file_of_a_stranger_is_not_even_fetched(server: TelegramServer, model: ScriptedModel) -> None:
    with a_daemon(server, model) as daemon:
        server.say(STRANGER, STRANGER, "", **PICTURE)
        server.until(lambda: server.unconfirmed == [] and bool(server.replies(STRANGER)))
        assert server.count("getFile") == 0
        assert stored(daemon) == []


def test_model_gets_a_note_about_a_file_that_cannot_be_fetched(server: TelegramServer, model: ScriptedModel) -> None:
    with a_daemon(server, model):
        server.fail("getFile", Fault(status=400, description="Bad Request: file is too big"))
        server.say(ANN, ANN, "", document={"file_id": "film", "file_name": "film.mkv"})
        answers(server, 1)
        told = without_fences(server.replies(ANN)[0])
        assert "heard: [file (film.mkv) was sent, but could not be fetched" in told
        assert "files larger than 20 MB" in server.replies(ANN)[0]


def test_a_voice_is_written_down_where_that_is_set_up(server: TelegramServer, model: ScriptedModel) -> None:
    voice = {"voice": {"file_id": "hello", "duration": 2, "mime_type": "audio/ogg"}}
    server.has_file("hello", b"OggS")
    with ExitStack() as stack:
        ears = stack.enter_context(TranscriptionServer())
        ears.hears = "Guten Tag"
        more = f'transcription: {{base_url: "{ears.base_url}", api_key_env: EARS_KEY}}\n'
        daemon = stack.enter_context(a_daemon(server, model, more, EARS_KEY="sesame-sesame"))
        server.say(ANN, ANN, "", **voice)
        answers(server, 1)
        assert server.replies(ANN)[0].endswith("spoken by the person. Automatic transcription:]\nGuten Tag")
        assert ears.asked == [("whisper-1", "sound.ogg", b"OggS", "Bearer sesame-sesame")]
        server.say(ANN, ANN, "run echo $EARS_KEY")
        answers(server, 2)
        assert "sesame" not in server.replies(ANN)[1]
        assert "sesame" not in daemon.stderr()


@pytest.mark.parametrize("moment", ["before MessageReceived", "chat: taken, not confirmed"])
def test_a_kill_between_the_download_and_the_confirmation_makes_one_turn_with_its_file(
    moment: str, server: TelegramServer, model: ScriptedModel
) -> None:
    with a_daemon(server, model) as daemon:
        daemon.terminate()
        daemon.start({"HERMES_TEST_CRASH": moment})
        server.say(ANN, ANN, "", **PICTURE, caption="look")
        assert daemon.process is not None
        assert daemon.process.wait(20) == -9
        assert [file.read_bytes() for file in stored(daemon)] == [JPEG]
        assert server.unconfirmed != []
        daemon.kill()
        daemon.start({"HERMES_TEST_CRASH": ""})
        answers(server, 1)
        server.until(lambda: server.unconfirmed == [])
        assert [file.read_bytes() for file in stored(daemon)] == [JPEG]
        assert server.count("file") == 1
        [session] = daemon.admin.get("/api/sessions?limit=9")["sessions"]
        eventually(lambda: daemon.admin.get(f"/sessions/{session['id']}")["session"]["turns"] == 1)
        assert len(server.replies(ANN)) == 1


def results(server: TelegramServer) -> list[str]:
    return [text for text in server.replies(ANN) if "results:" in text]


def files(server: TelegramServer) -> list[tuple[str, str, bytes]]:
    return [each.file for each in server.history(ANN) if each.file is not None]


def send(path: Path) -> str:
    return f"call send_file {json.dumps({'path': str(path)})}"


def test_the_agent_sends_a_file(server: TelegramServer, model: ScriptedModel, tmp_path: Path) -> None:
    (tmp_path / "report.txt").write_text("all is well")
    (tmp_path / ".env").write_text("KEY=1")
    with a_daemon(server, model, f'terminal: {{cwd: "{tmp_path}"}}\n') as daemon:
        server.say(ANN, ANN, send(Path("report.txt")))
        server.until(lambda: len(results(server)) == 1 and len(files(server)) == 1)
        assert "queued for delivery" in results(server)[0]
        for number, path in enumerate((".env", str(daemon.home / "api.key")), 2):
            server.say(ANN, ANN, send(Path(path)))
            server.until(lambda number=number: len(results(server)) == number)  # type: ignore[misc]
            assert "on its way" not in results(server)[-1]
        assert files(server) == [("document", "report.txt", b"all is well")]


def test_a_received_file_is_open_to_the_tools_of_its_chat_only(server: TelegramServer, model: ScriptedModel) -> None:
    working_sandbox()
    server.has_file("doc", b"for ann alone")
    with a_daemon(server, model, HERMES_SANDBOX_MODE="auto") as daemon:
        server.say(ANN, ANN, "", document={"file_id": "doc", "file_name": "doc.txt"})
        answers(server, 1)
        [file] = stored(daemon)
        wishes = (f"run cat {file}", f"call read_file {json.dumps({'path': str(file)})}", send(file))
        for number, wish in enumerate(wishes, 1):
            server.say(ANN, ANN, wish)
            server.until(lambda number=number: len(results(server)) == number)  # type: ignore[misc]
            server.say(GROUP, ANN, f"@hermes_test_bot {wish}")
            server.until(lambda number=number: len(server.replies(GROUP)) == number)  # type: ignore[misc]
        server.until(lambda: len(files(server)) == 1)
        assert all("for ann alone" in text for text in results(server)[:2])
        assert files(server)[0][2] == b"for ann alone"
        refusals = ("No such file or directory", "does not exist", "Only files below")
        said = server.replies(GROUP)
        assert all(why in text and "for ann" not in text for why, text in zip(refusals, said, strict=True))


def test_a_file_that_the_agent_sent_arrives_after_a_crash(
    server: TelegramServer, model: ScriptedModel, tmp_path: Path
) -> None:
    (tmp_path / "report.txt").write_text("all is well")
    with a_daemon(server, model, f'terminal: {{cwd: "{tmp_path}"}}\n') as daemon:
        daemon.terminate()
        daemon.start({"HERMES_TEST_CRASH": "after ToolFinished"})
        server.say(ANN, ANN, send(Path("report.txt")))
        assert daemon.process is not None
        assert daemon.process.wait(20) == -9
        (tmp_path / "report.txt").unlink()
        daemon.kill()
        daemon.start({"HERMES_TEST_CRASH": ""})
        server.until(lambda: len(results(server)) == 1 and len(files(server)) == 1)
        assert files(server) == [("document", "report.txt", b"all is well")]


def test_messages_come_by_webhook_and_after_the_switch_by_polling(
    server: TelegramServer, model: ScriptedModel
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/telegram"
    environ = {"HERMES_TELEGRAM_WEBHOOK_URL": url, "HERMES_TELEGRAM_WEBHOOK_PORT": str(port)}
    with a_daemon(server, model, **environ) as daemon:
        server.say(ANN, ANN, "say one")
        server.until(lambda: server.replies(ANN) == ["one"] and server.unconfirmed == [])
        assert server.count("getUpdates") == 0
        eventually(lambda: daemon.admin.get("/store")["outbox"] == 0)
        daemon.kill()
        server.say(ANN, ANN, "say two")
        daemon.start({"HERMES_TELEGRAM_WEBHOOK_URL": ""})
        server.until(lambda: server.replies(ANN) == ["one", "two"])
        assert server.webhook == ""
