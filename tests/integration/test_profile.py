"""Person model with the real daemon: learned after a turn, in the next prompt, once after a kill, gone on request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.model_server import Reply
from tests.support.scripted_model import ScriptedModel, answered
from tests.support.telegram_server import TOKEN, TelegramServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(300)
ANN, BEN = 7, 8
ON = "profile: {provider: builtin}\nauxiliary: {title: none}\n"


def conclude(body: dict[str, Any]) -> Reply | None:
    """Conclude where people live; a newer home replaces the one that is believed."""
    if "You keep a model of a person" not in str(body["messages"][0]["content"]):
        return None
    text = body["messages"][-1]["content"]
    known = re.findall(r"(\d+)\. home:", text)
    facts = [
        {
            "topic": "home",
            "fact": f"Lives in {city}.",
            "quote": f"I live in {city}",
            "replaces": known[0] if known else "",
        }
        for city in re.findall(r"person: I live in (\w+)", text)
    ]
    return answered(json.dumps(facts))


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(idle_timeout_s=60) as model:
        model.on_request = conclude
        yield model


def beliefs(daemon: DaemonProcess, person: str = "owner") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = daemon.admin.get("/profile", person=person)["beliefs"]
    return found


def held(daemon: DaemonProcess, person: str = "owner") -> list[str]:
    return [each["text"] for each in beliefs(daemon, person) if not each["superseded_by"]]


def prompt(model: ScriptedModel, mark: str) -> str:
    asked = [each["messages"] for each in model.requests if mark in str(each["messages"][-1]["content"])]
    text: str = next(each[0]["content"] for each in asked if "You keep a model" not in str(each[0]["content"]))
    return text


def test_what_a_person_said_is_believed_explained_replaced_and_forgotten(model: ScriptedModel) -> None:
    with DaemonProcess(config=model.config + ON) as daemon:
        daemon.ask("I live in Porto", session="one")
        eventually(lambda: held(daemon) == ["Lives in Porto."])
        daemon.ask("I live in Lisbon", session="one")
        eventually(lambda: held(daemon) == ["Lives in Lisbon."])
        daemon.ask("first words", session="two")
        assert "- Lives in Lisbon. (said," in prompt(model, "first words")
        assert "Porto" not in prompt(model, "first words")
        shown = json.loads(daemon.hermes("profile", "show", "2", "--json").stdout)
        [evidence] = shown["evidence"]
        assert (evidence["session"], evidence["quote"]) == ("one", "I live in Lisbon")
        assert "Lives in Lisbon." in daemon.hermes("profile").stdout
        assert "replaced 1: Lives in Porto." in daemon.hermes("profile", "show", "2").stdout
        told = daemon.request("POST", "/api/sessions/two/commands", {"text": "/profile"}).json()
        assert "2. Lives in Lisbon." in told["text"]
        assert daemon.hermes("profile", "forget", "9").returncode != 0
        assert "Forgot 2 beliefs." in daemon.hermes("profile", "forget", "2").stdout
        assert beliefs(daemon) == []
        daemon.ask("third words", session="three")
        assert "Lisbon" not in prompt(model, "third words")
        daemon.terminate()
        stored = b"".join(each.read_bytes() for each in (daemon.home / "logs").rglob("*.log"))
        assert b"Lisbon" not in stored, "logs hold no message texts"


@pytest.mark.parametrize("step", ["profile: about to store", "before AppendChange", "after AppendChange"])
def test_a_kill_while_something_is_learned_loses_and_doubles_nothing(model: ScriptedModel, step: str) -> None:
    with DaemonProcess(config=model.config + ON, environ={"HERMES_TEST_CRASH": step}) as daemon:
        daemon.ask("I live in Porto", session="one")
        assert daemon.process is not None
        daemon.process.wait(30)
        daemon.kill()
        daemon.start({"HERMES_TEST_CRASH": ""})
        eventually(lambda: held(daemon) == ["Lives in Porto."])
        daemon.ask("hello", session="one")
        assert len(beliefs(daemon)) == 1
        assert len(beliefs(daemon)[0]["evidence"]) == 1


def test_each_person_has_a_profile_of_their_own(model: ScriptedModel) -> None:
    people = f'allowed_users: ["{ANN}", "{BEN}"]'
    with TelegramServer() as server:
        config = f'{model.config}{ON}telegram: {{enabled: true, base_url: "{server.base_url}", {people}}}\n'
        with DaemonProcess(config=config, environ={"TELEGRAM_BOT_TOKEN": TOKEN}) as daemon:

            def say(user: int, text: str) -> str:
                before = len(server.replies(user))
                server.say(user, user, text)
                server.until(lambda: len(server.replies(user)) > before)
                return str(server.replies(user)[-1])

            say(ANN, "I live in Annville")
            say(BEN, "I live in Bentown")
            daemon.ask("I live in Ownerby", session="mine")
            for person, home in (
                (f"telegram:{ANN}", "Annville"),
                (f"telegram:{BEN}", "Bentown"),
                ("owner", "Ownerby"),
            ):
                eventually(lambda person=person, home=home: held(daemon, person) == [f"Lives in {home}."])
            say(ANN, "/new now")
            say(ANN, "words of ann")
            assert {home for home in ("Annville", "Bentown", "Ownerby") if home in prompt(model, "words of ann")} == {
                "Annville"
            }
            assert "Annville" in say(ANN, "/profile")
            assert "Bentown" not in say(ANN, "/search live")
            assert "Bentown" not in say(ANN, f"/search person:telegram:{BEN} live")
            assert "Annville" in say(ANN, "/profile forget all")
            assert held(daemon, f"telegram:{BEN}") == ["Lives in Bentown."]
