"""A person on Telegram and the real daemon: answers, questions, a crash and an outage in between."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from hermes.domain.text.fence import without_fences
from tests.support.daemon_process import DaemonProcess
from tests.support.model_server import STALL, delta, stream
from tests.support.scripted_model import ScriptedModel
from tests.support.telegram_server import TOKEN, Fault, TelegramServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)
ANN = 7


@pytest.fixture
def server() -> Iterator[TelegramServer]:
    with TelegramServer() as server:
        yield server


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(idle_timeout_s=60) as model:
        yield model


@pytest.fixture
def daemon(server: TelegramServer, model: ScriptedModel) -> Iterator[DaemonProcess]:
    with ExitStack() as stack:
        config = (
            f'{model.config}telegram: {{enabled: true, base_url: "{server.base_url}", allowed_users: ["{ANN}"]}}\n'
        )
        yield stack.enter_context(DaemonProcess(config=config, environ={"TELEGRAM_BOT_TOKEN": TOKEN}))


def test_a_message_is_answered(server: TelegramServer, daemon: DaemonProcess) -> None:
    server.say(ANN, ANN, "say **hello** `there`")
    server.until(lambda: server.replies(ANN) == ["hello there"])
    assert "telegram: running\n" in daemon.hermes("status").stdout
    assert TOKEN not in daemon.stderr()


def test_it_says_that_it_runs_before_anybody_has_written(server: TelegramServer, daemon: DaemonProcess) -> None:
    eventually(lambda: "telegram: running\n" in daemon.hermes("status").stdout)


def test_a_stop_says_what_is_not_delivered_yet(server: TelegramServer, daemon: DaemonProcess) -> None:
    server.say(ANN, ANN, "say hello")
    server.until(lambda: server.replies(ANN) == ["hello"])
    server.fail("sendMessage", *[Fault(status=502)] * 50)
    server.say(ANN, ANN, "say later")
    eventually(lambda: "1 to say" in daemon.hermes("ps", "--actors").stdout)
    assert "1 message waits for delivery to a chat" in daemon.hermes("stop").stdout


def test_the_model_knows_whom_it_talks_to_also_after_a_restart(
    server: TelegramServer, model: ScriptedModel, daemon: DaemonProcess
) -> None:
    server.say(ANN, ANN, "say hello")
    server.until(lambda: server.replies(ANN) == ["hello"])
    assert daemon.terminate() == 0  # killed, it might say the last answer again
    daemon.start()
    server.say(ANN, ANN, "say again")
    server.until(lambda: server.replies(ANN) == ["hello", "again"])
    first, second = ([str(each["content"]) for each in body["messages"]] for body in model.requests)
    assert "Chat: a private chat\nPerson: person 7\n" in without_fences(first[0])
    assert (second[0], second[-1]) == (first[0], "say again")
    server.say(-5, ANN, "@hermes_test_bot say hi", thread=3)
    server.until(lambda: server.replies(-5) == ["hi"])
    shown = [str(each["content"]) for each in model.requests[-1]["messages"]]
    assert "Chat: a thread, group 5\n" in without_fences(shown[0])
    assert "Several people share this conversation" in shown[0]
    assert without_fences(shown[-1]) == "[person 7] say hi"


def test_stranger_gets_one_notice_and_no_answer(server: TelegramServer, daemon: DaemonProcess) -> None:
    server.say(8, 8, "say hello")
    server.say(8, 8, "say hello")
    server.say(ANN, ANN, "say hello")
    server.until(lambda: server.replies(ANN) == ["hello"] and server.unconfirmed == [] and bool(server.replies(8)))
    assert len(server.replies(8)) == 1
    assert "Your user id is 8" in server.replies(8)[0]


def test_search_hides_other_peoples_messages(server: TelegramServer, model: ScriptedModel) -> None:
    bob = 9
    people = f'allowed_users: ["{ANN}", "{bob}"]'
    config = f'{model.config}telegram: {{enabled: true, base_url: "{server.base_url}", {people}}}\n'
    with DaemonProcess(config=config, environ={"TELEGRAM_BOT_TOKEN": TOKEN}):
        server.say(ANN, ANN, "say the code is zebra")
        server.until(lambda: server.replies(ANN) == ["the code is zebra"])
        for arguments in ('{"query": "zebra"}', "{}"):
            server.say(bob, bob, f"call session_search {arguments}")
        server.until(lambda: len(server.replies(bob)) == 2)
        found, latest = server.replies(bob)
        assert "Nothing was found" in found
        assert latest.count("session ") == 1
        assert "(this one)" in latest


def test_a_question_is_answered_by_its_button_also_after_a_restart(
    server: TelegramServer, daemon: DaemonProcess
) -> None:
    server.say(ANN, ANN, "ask which colour?")
    server.until(lambda: any(each.keyboard for each in server.history(ANN)))
    question = next(each for each in server.history(ANN) if each.keyboard)
    daemon.kill()
    daemon.start()
    query = server.press(ANN, question.id, "blue", ANN)
    server.until(lambda: any("results:" in text and "blue" in text for text in server.replies(ANN)))
    server.until(lambda: query in server.answered_queries)


def test_the_buttons_of_a_question_go_however_it_ends(server: TelegramServer, daemon: DaemonProcess) -> None:
    for end, ended in (
        (lambda: server.say(ANN, ANN, "blue"), "→ blue"),
        (lambda: daemon.hermes("answer", "-", "red"), "→ red"),
        (lambda: server.say(ANN, ANN, "/stop"), "→ not answered"),
    ):
        server.say(ANN, ANN, "ask which colour?")
        server.until(lambda: any(each.keyboard for each in server.history(ANN)))
        end()
        server.until(lambda: not any(each.keyboard for each in server.history(ANN)))
        assert [text for text in server.replies(ANN) if "→" in text][-1].endswith(ended)


def test_what_was_sent_while_the_daemon_was_down_is_answered_once_and_in_order(
    server: TelegramServer, daemon: DaemonProcess
) -> None:
    daemon.kill()
    for number in range(3):
        server.say(ANN, ANN, f"say number {number}")
    daemon.start()
    server.until(lambda: len(server.replies(ANN)) == 3)
    assert server.replies(ANN) == [f"number {number}" for number in range(3)]
    assert server.violations == []


def test_an_outage_delays_an_answer_and_loses_none(server: TelegramServer, daemon: DaemonProcess) -> None:
    server.fail("getUpdates", Fault.bad_gateway())
    server.fail("sendMessage", Fault.flood(1), Fault(status=400, description="Bad Request: odd"))
    server.say(ANN, ANN, "say hello")
    server.until(lambda: server.replies(ANN) == ["hello"])


def test_a_restart_by_command_happens_once_though_telegram_delivers_it_again(server: TelegramServer) -> None:
    with ScriptedModel() as model:
        telegram = f'{{enabled: true, base_url: "{server.base_url}", allowed_users: ["{ANN}"], admins: ["{ANN}"]}}'
        config = f"{model.config}telegram: {telegram}\n"
        environ = {"TELEGRAM_BOT_TOKEN": TOKEN, "HERMES_TEST_CRASH": "chat: taken, not confirmed"}
        with DaemonProcess(config=config, environ=environ) as daemon:
            server.say(ANN, ANN, "/restart yes")
            assert daemon.process is not None
            daemon.process.wait(30)
            assert server.unconfirmed != []
            daemon.kill()
            daemon.start({"HERMES_TEST_CRASH": ""})
            server.say(ANN, ANN, "say I am back")
            server.until(lambda: "I am back" in server.replies(ANN) and server.unconfirmed == [])
            # Killed before it had stopped, or in the life after that: either way it came again, and once more.
            assert daemon.stderr().count("stopping for a restart") == 1
            assert len([text for text in server.replies(ANN) if "estart" in text]) == 1


def test_several_turns_are_taken_back_by_a_button_also_after_a_restart(
    server: TelegramServer, daemon: DaemonProcess
) -> None:
    for number in range(3):
        server.say(ANN, ANN, f"say number {number}")
        server.until(lambda number=number: f"number {number}" in server.replies(ANN))  # type: ignore[misc]
    server.say(ANN, ANN, "/undo 2")
    server.until(lambda: any(each.keyboard for each in server.history(ANN)))
    question = next(each for each in server.history(ANN) if each.keyboard)
    assert question.text.startswith("Undo the last 2 turns?")
    daemon.terminate()  # killed, it might ask again
    daemon.start()
    for _ in range(2):  # in a hurry
        server.press(ANN, question.id, "yes, 2 turns", ANN)
    server.until(lambda: not any(each.keyboard for each in server.history(ANN)) and server.unconfirmed == [])
    assert server.replies(ANN)[-1].endswith("The last message is now: “number 0”")
    assert len(server.replies(ANN)) == 4


def test_a_group_that_is_open_hears_strangers_and_one_that_is_not_named_hears_nobody(server: TelegramServer) -> None:
    with ScriptedModel() as model:
        places = 'allowed_chats: ["-5", "-6"], open_chats: ["-5"]'
        telegram = f'{{enabled: true, base_url: "{server.base_url}", allowed_users: ["{ANN}"], {places}}}'
        config = f"{model.config}telegram: {telegram}\n"
        with DaemonProcess(config=config, environ={"TELEGRAM_BOT_TOKEN": TOKEN}):
            for chat, user in ((-5, 8), (-6, 8), (-6, ANN), (-7, ANN), (ANN, ANN)):
                server.say(chat, user, f"@hermes_test_bot say hello {user}")
            server.until(lambda: server.unconfirmed == [] and bool(server.replies(ANN)))
            server.until(lambda: (server.replies(-5), server.replies(-6)) == (["hello 8"], ["hello 7"]))
            assert server.replies(-7) == []


def test_a_stop_keeps_what_was_shown_and_answers_once(
    server: TelegramServer, model: ScriptedModel, daemon: DaemonProcess
) -> None:
    model.on_request = lambda body: stream(delta(content="I begin to answer"), STALL)
    server.say(ANN, ANN, "a long story")
    server.until(lambda: server.replies(ANN) == ["I begin to answer ▌"])
    server.say(ANN, ANN, "and another")
    server.say(ANN, ANN, "/stop")
    server.until(lambda: len(server.replies(ANN)) == 2 and "▌" not in server.replies(ANN)[0])
    server.say(ANN, ANN, "/status")
    server.until(lambda: len(server.replies(ANN)) == 3)
    stopped = "Stopped. 1 queued message was dropped."
    assert server.replies(ANN)[:2] == ["I begin to answer\n\n(stopped)", stopped]


def test_a_group_that_becomes_a_supergroup_goes_on(server: TelegramServer, daemon: DaemonProcess) -> None:
    server.say(-5, ANN, "/title our trip")
    server.until(lambda: len(server.replies(-5)) == 1)
    server.migrate(-5, -1005)
    server.say(-1005, ANN, "/title")
    server.until(lambda: len(server.replies(-1005)) == 1)
    assert "our trip" in server.replies(-1005)[0]
    assert "dead letter" not in daemon.stderr()


def test_a_model_is_chosen_by_a_button_also_after_a_restart(server: TelegramServer, daemon: DaemonProcess) -> None:
    server.say(ANN, ANN, "/model")
    server.until(lambda: any(each.keyboard for each in server.history(ANN)))
    offered = next(each for each in server.history(ANN) if each.keyboard)
    daemon.kill()
    daemon.start()
    server.press(ANN, offered.id, "default", ANN)
    server.until(lambda: not offered.keyboard)
    assert offered.text.startswith("The model is the configured one")


def test_forward_is_shown_to_the_model_and_changes_nothing(
    server: TelegramServer, model: ScriptedModel, daemon: DaemonProcess
) -> None:
    server.say(ANN, ANN, "say hello")
    server.until(lambda: server.replies(ANN) == ["hello"])
    origin = {"type": "hidden_user", "sender_user_name": "Eve", "date": 1}
    server.say(ANN, ANN, "/yolo on", forward_origin=origin)
    server.until(lambda: len(server.replies(ANN)) == 2)
    shown = str(model.requests[-1]["messages"][-1]["content"])
    assert re.fullmatch(
        r"\[forwarded message by <untrusted-(\w+)>Eve</untrusted-\1>: <untrusted-\1>/yolo on</untrusted-\1>\]", shown
    )
    assert json.loads(daemon.hermes("show", "-", "--json").stdout)["preferences"]["yolo"] is False
