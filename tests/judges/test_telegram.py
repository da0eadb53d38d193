"""The real daemon and the real python-telegram-bot before a Bot API that others wrote."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.judges.mock_telegram import BOT_NAME, TOKEN, MockTelegram
from tests.support.daemon_process import DaemonProcess
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)
PEOPLE = range(1, 10)  # a test each, so that they can share a daemon
GROUP = -100


@pytest.fixture(scope="module")
def telegram(packages: Path) -> Iterator[MockTelegram]:
    with MockTelegram(packages) as server:
        yield server


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture(scope="module")
def daemon(telegram: MockTelegram, model: ScriptedModel) -> Iterator[DaemonProcess]:
    users = [str(each) for each in PEOPLE]
    config = f'{model.config}telegram: {{enabled: true, base_url: "{telegram.base_url}", admins: {users}}}\n'
    with DaemonProcess(config=config, environ={"TELEGRAM_BOT_TOKEN": TOKEN}) as daemon:
        yield daemon


def test_a_first_conversation(telegram: MockTelegram, daemon: DaemonProcess) -> None:
    telegram.say(1, 1, "say **hello** & `goodbye`")
    assert telegram.until_replies(1) == ["<b>hello</b> &amp; <code>goodbye</code>"]
    telegram.say(1, 1, "say and again")
    assert telegram.until_replies(1, 2)[1] == "and again"
    assert {"new", "status", "stop"} <= set(telegram.menu)
    assert TOKEN not in daemon.stderr()


def test_a_command(telegram: MockTelegram, daemon: DaemonProcess) -> None:
    command = {"type": "bot_command", "offset": 0, "length": 7}
    telegram.say(2, 2, "/status", entities=[command])
    assert telegram.until_replies(2) == ["There is no conversation here yet. The next message starts one."]


def test_an_approval_by_button(telegram: MockTelegram, daemon: DaemonProcess, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    telegram.say(3, 3, f"run rm -rf {tmp_path}/folder")
    assert "rm -rf" in telegram.until_replies(3)[0]
    assert (tmp_path / "folder").exists()
    query = telegram.press(3, 3, "once")
    eventually(lambda: any("results:" in each for each in telegram.replies(3)))
    assert not (tmp_path / "folder").exists()
    answered = [each for each in telegram.calls() if each["method"] == "answerCallbackQuery"]
    assert [each["payload"]["callback_query_id"] for each in answered] == [query]


def test_a_long_answer_comes_in_parts_and_its_code_stays_code(telegram: MockTelegram, daemon: DaemonProcess) -> None:
    lines = [f"line {number} of a listing that goes on and on" for number in range(250)]
    telegram.say(4, 4, "say This is it:\n```python\n" + "\n".join(lines) + "\n```\nThat was it.")
    parts = eventually(lambda: "That was it." in "".join(telegram.replies(4)) and telegram.replies(4))
    assert len(parts) > 2
    visible = [html.unescape(re.sub(r"<[^>]*>", "", each)) for each in parts]
    assert all(len(each.encode("utf-16-le")) // 2 <= 4096 for each in visible)
    assert re.findall(r"line \d+ of.*", "\n".join(visible)) == lines
    assert all('<pre><code class="language-python">' in each and "</code></pre>" in each for each in parts)


def test_a_file_with_a_caption(telegram: MockTelegram, model: ScriptedModel, daemon: DaemonProcess) -> None:
    document = {"file_id": "f1", "file_unique_id": "u1", "file_name": "plan.pdf", "file_size": 3}
    telegram.say(5, 5, caption="what does this plan say?", document=document)
    telegram.until_replies(5)
    assert any("what does this plan say?" in str(each["messages"][-1]["content"]) for each in model.requests)


def test_group_with_a_call(telegram: MockTelegram, daemon: DaemonProcess) -> None:
    telegram.say(GROUP, 6, "say nothing to us")
    mention = {"type": "mention", "offset": 0, "length": len(BOT_NAME) + 1}
    telegram.say(GROUP, 6, f"@{BOT_NAME} say hello to all", entities=[mention])
    assert telegram.until_replies(GROUP) == ["hello to all"]
    sent = [each["payload"] for each in telegram.calls() if each["payload"].get("chat_id") == str(GROUP)]
    assert [each["reply_parameters"]["message_id"] for each in sent if "reply_parameters" in each], sent


def test_what_was_said_while_the_daemon_was_dead_is_answered_once(
    telegram: MockTelegram, daemon: DaemonProcess
) -> None:
    telegram.say(7, 7, "say before")
    telegram.until_replies(7)
    eventually(lambda: daemon.admin.get("/store")["outbox"] == 0)  # it knows that this was shown
    daemon.kill()
    for number in range(2):
        telegram.say(7, 7, f"say number {number}")
    daemon.start()
    assert telegram.until_replies(7, 3)[-2:] == [f"number {number}" for number in range(2)]
    telegram.say(8, 8, "say done")
    telegram.until_replies(8)
    assert len(telegram.replies(7)) == 3
