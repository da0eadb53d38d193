"""`hermes status`, for people, scripts and health checks."""

from __future__ import annotations

import json
import socket

import pytest

from hermes.cli import client
from hermes.cli.main import main
from hermes.config.home import Home
from tests.cli.conftest import Hermes
from tests.cli.fake_admin import Answer, FakeAdmin
from tests.cli.test_inspect import ACTOR

INFO = {
    "version": "0.1.0",
    "pid": 42,
    "uptime_s": 61.0,
    "ready": True,
    "reason": "",
    "turns": {"in_flight": 3, "calling": 2},
    "sessions_waiting": 0,
    "memory_bytes": 50 << 20,
    "home": "/srv/hermes",
    "model": "offline",
    "address": "http://127.0.0.1:8642",
}


def test_a_daemon_that_is_ready_is_a_success(admin: FakeAdmin, hermes: Hermes) -> None:
    admin.routes["GET /info"] = Answer(body=INFO | {"sessions_waiting": 1})
    admin.routes["GET /actors"] = Answer(body={"actors": [ACTOR, {**ACTOR, "name": "s7", "state": "waiting"}]})
    done = hermes("status")
    assert (done.returncode, done.stderr) == (0, "")
    assert "state:    ready\n" in done.stdout
    assert "process:  42, up 1m01s, 50.0 MiB of memory\n" in done.stdout
    assert "turns:    3 in flight, 2 calling the model\n" in done.stdout
    assert "waiting:  1 session waits for an answer (`hermes sessions --waiting`): s7\n" in done.stdout
    assert json.loads(hermes("status", "--json").stdout) == INFO | {"sessions_waiting": 1}


def test_status_of_a_daemon_that_is_not_ready(admin: FakeAdmin, hermes: Hermes) -> None:
    admin.routes["GET /info"] = Answer(body={**INFO, "ready": False, "reason": "no space left"})
    done = hermes("status")
    assert done.returncode == 1
    assert "state:    not ready: no space left\n" in done.stdout


def test_platform_that_is_down_does_not_fail_status(admin: FakeAdmin, hermes: Hermes) -> None:
    platforms = [
        {"name": "slack", "state": "running", "problem": "it was away once"},
        {"name": "telegram", "state": "down", "problem": "Telegram cannot be reached"},
    ]
    admin.routes["GET /info"] = Answer(body={**INFO, "platforms": platforms})
    done = hermes("status")
    assert done.returncode == 0
    assert "slack:    running\n" in done.stdout
    assert "telegram: down: Telegram cannot be reached\n" in done.stdout
    assert json.loads(hermes("status", "--json").stdout)["platforms"] == platforms


def test_an_index_that_is_being_built_is_shown(admin: FakeAdmin, hermes: Hermes) -> None:
    index = {"indexed": 3_000_000, "total": 7_000_000, "building": True}
    admin.routes["GET /info"] = Answer(body={**INFO, "search_index": index})
    assert "search:   indexing, 3,000,000 of 7,000,000 records; search does not find newer" in hermes("status").stdout
    assert json.loads(hermes("status", "--json").stdout)["search_index"] == index
    admin.routes["GET /info"] = Answer(body={**INFO, "search_index": {**index, "building": False}})
    assert "search:" not in hermes("status").stdout


def test_status_reports_a_boot_loop(admin: FakeAdmin, hermes: Hermes) -> None:
    admin.routes["GET /info"] = Answer(body={**INFO, "resume": "held: several starts within a minute"})
    assert "resume:   held: several starts within a minute\n" in hermes("status").stdout


def test_without_a_daemon_there_is_nothing_to_tell(home: Home, hermes: Hermes) -> None:
    done = hermes("status")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no daemon runs on" in done.stderr


def test_scripts_get_an_answer_also_without_a_daemon(home: Home, hermes: Hermes) -> None:
    done = hermes("status", "--json")
    assert (done.returncode, done.stderr) == (1, "")
    told = json.loads(done.stdout)
    assert told | {"reason": ""} == {"ready": False, "reason": "", "pid": None, "home": str(home.data_dir)}
    assert "no daemon runs on" in told["reason"]


def test_scripts_get_an_answer_also_from_a_daemon_that_hangs(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client.AdminClient.info, "__kwdefaults__", {"timeout_s": 0.1})
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(home.socket))
        silent.listen()
        assert main(["status", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["ready"], told["pid"]) == (False, None)  # nobody holds the home
    assert "did not answer" in told["reason"]


def test_status_of_an_idle_daemon(admin: FakeAdmin, hermes: Hermes) -> None:
    quiet = {"turns": {"in_flight": 0, "calling": 0}, "sessions_waiting": 0}
    admin.routes["GET /info"] = Answer(body={**INFO, **quiet})
    told = hermes("status").stdout
    assert "turns:    none in flight\n" in told
    assert "waiting:" not in told


def test_model_line_shows_the_last_failure_until_the_next_answer(admin: FakeAdmin, hermes: Hermes) -> None:
    failure = {
        "at": 1_000.0,
        "model": "m",
        "code": "connection",
        "cause": "refused",
        "status": None,
        "address": "http://127.0.0.1:9/v1",
    }
    admin.routes["GET /info"] = Answer(body={**INFO, "model_health": {"answered_at": None, "last_failure": failure}})
    shown = hermes("status").stdout
    shown = " ".join(shown.split())
    assert "last call of m failed" in shown
    assert "connection refused at http://127.0.0.1:9/v1" in shown
    health = {"answered_at": 2_000.0, "last_failure": failure}
    admin.routes["GET /info"] = Answer(body={**INFO, "model_health": health})
    shown = hermes("status").stdout
    assert "last answered" in shown
    assert "refused" not in shown
    assert json.loads(hermes("status", "--json").stdout)["model_health"] == health


def test_calls_that_wait_for_the_model_are_counted(admin: FakeAdmin, hermes: Hermes) -> None:
    admin.routes["GET /info"] = Answer(body={**INFO, "turns": {"in_flight": 3, "calling": 1, "waiting": 2}})
    assert "turns:    3 in flight, 1 calling the model, 2 waiting for a model call\n" in hermes("status").stdout
