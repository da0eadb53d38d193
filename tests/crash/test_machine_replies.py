"""Faults of the machine while replies go out to a chat: the disk is full when one is to be confirmed, the clock is
set while a platform is waited for.

A reply is seen once, or once more with a warning where nobody could know; and nothing stays owed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.actors.delivery.attempt import REPEATED
from tests.crash.machine import no_file_may_grow
from tests.crash.survey import survey
from tests.support.daemon_process import DaemonProcess
from tests.support.judge import Complaint, History, judge
from tests.support.scripted_model import ScriptedModel
from tests.support.telegram_server import TOKEN, Fault, TelegramServer
from tests.support.waiting import eventually

CHAT = 7
DAY_S = 86400.0
REPEAT = REPEATED + "done"

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def telegram() -> Iterator[TelegramServer]:
    with TelegramServer() as telegram:
        yield telegram


@pytest.fixture
def daemon(telegram: TelegramServer, tmp_path: Path) -> Iterator[DaemonProcess]:
    with ScriptedModel() as model:
        config = (
            f'{model.config}telegram: {{enabled: true, base_url: "{telegram.base_url}", allowed_users: ["{CHAT}"]}}\n'
        )
        environ = {"TELEGRAM_BOT_TOKEN": TOKEN, "HERMES_TEST_CLOCK": str(tmp_path / "clock")}
        with DaemonProcess(config=config, environ=environ) as daemon:
            yield daemon


def say_and_wait_until_it_is_on_its_way(daemon: DaemonProcess, telegram: TelegramServer) -> threading.Event:
    """The turn is over, the reply has arrived in the chat, and the daemon does not know it until this is set."""
    known = threading.Event()
    telegram.fail("sendMessage", Fault(held=known))
    telegram.say(CHAT, CHAT, "say done")
    telegram.until(lambda: telegram.count("sendMessage") == 1)
    eventually(lambda: [each["phase"] for each in daemon.admin.get("/api/sessions")["sessions"]] == ["idle"])
    return known


def require_all_said(daemon: DaemonProcess, telegram: TelegramServer) -> None:
    eventually(lambda: daemon.admin.get("/store")["outbox"] == 0, within_s=40)
    assert telegram.violations == []
    assert "Traceback" not in daemon.stderr()
    assert daemon.terminate() == 0
    assert judge(History([each for each in survey(daemon.home) if isinstance(each, Complaint)])) == []


def test_a_reply_that_could_not_be_confirmed_for_lack_of_space_is_not_said_again(
    daemon: DaemonProcess, telegram: TelegramServer
) -> None:
    known = say_and_wait_until_it_is_on_its_way(daemon, telegram)
    with no_file_may_grow(daemon):
        known.set()
        eventually(lambda: "no space left" in str(daemon.admin.get("/actors")))
    require_all_said(daemon, telegram)
    assert telegram.replies(CHAT) == ["done"]


def test_a_kill_before_a_reply_could_be_confirmed_says_it_once_more_with_a_warning(
    daemon: DaemonProcess, telegram: TelegramServer
) -> None:
    known = say_and_wait_until_it_is_on_its_way(daemon, telegram)
    with no_file_may_grow(daemon):
        known.set()
        eventually(lambda: "no space left" in str(daemon.admin.get("/actors")))
        daemon.kill()
    daemon.start()
    telegram.until(lambda: len(telegram.replies(CHAT)) > 1)
    require_all_said(daemon, telegram)
    assert telegram.replies(CHAT) == ["done", REPEAT]


def test_a_kill_right_after_a_reply_was_confirmed_says_nothing_again(
    daemon: DaemonProcess, telegram: TelegramServer
) -> None:
    daemon.kill()
    daemon.start({"HERMES_TEST_CRASH": "after MarkDelivered"})
    telegram.say(CHAT, CHAT, "say done")
    assert daemon.process is not None
    assert daemon.process.wait(40) == -9
    daemon.kill()
    daemon.start({"HERMES_TEST_CRASH": ""})
    telegram.say(CHAT, CHAT, "say more")
    telegram.until(lambda: len(telegram.replies(CHAT)) > 1)
    require_all_said(daemon, telegram)
    assert telegram.replies(CHAT) == ["done", "more"]


def test_a_clock_that_is_set_to_and_fro_while_a_platform_is_waited_for_holds_up_no_reply(
    daemon: DaemonProcess, telegram: TelegramServer, tmp_path: Path
) -> None:
    telegram.fail("sendMessage", *[Fault.bad_gateway()] * 3)
    telegram.say(CHAT, CHAT, "say done")
    for times, days in enumerate((-20, 20, -40), 1):
        telegram.until(lambda times=times: telegram.count("sendMessage") >= times)  # type: ignore[misc]
        (tmp_path / "clock").write_text(str(days * DAY_S), encoding="ascii")
    telegram.until(lambda: telegram.replies(CHAT) != [])
    require_all_said(daemon, telegram)
    assert telegram.replies(CHAT) == [REPEAT], "of none of the earlier tries anybody knew whether it had arrived"
