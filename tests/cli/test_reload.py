"""`hermes reload`: changes, settings that need a restart, and errors."""

from __future__ import annotations

import json

import pytest

from hermes.app.secret_files import Rewritten, in_force, rewritten
from hermes.cli.commands.reload import reload_running
from hermes.cli.main import main
from hermes.config.home import Home, lock
from tests.cli.fake_admin import Answer, FakeAdmin
from tests.support.daemon_process import DaemonProcess
from tests.support.scripted_model import ScriptedModel


def test_reload_prints_each_change(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    answer = {"applied": {"log.level": ["INFO", "DEBUG"]}, "needs_restart": {"api.port": [1, 2]}}
    admin.routes["POST /reload"] = Answer(body=answer)
    assert main(["reload"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        'log.level: "INFO" -> "DEBUG"',
        "These take effect after `hermes restart`:",
        "  api.port: 1 -> 2",
    ]
    assert main(["reload", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == answer
    admin.routes["POST /reload"] = Answer(body={"applied": {}, "needs_restart": {}})
    assert main(["reload"]) == 0
    assert capsys.readouterr().out == "Nothing has changed.\n"


def test_reload_repeats_settings_that_need_a_restart() -> None:
    with DaemonProcess() as daemon:
        file = daemon.home / "config.yaml"
        assert daemon.process is not None
        told = daemon.hermes("reload").stdout.splitlines()
        assert told[0] == "Nothing has changed."
        assert told[1:] == [
            f"The daemon (pid {daemon.process.pid}) used the environment variables that it was started with."
        ]
        file.write_text("sessions: {max_queue: 7}\nterminal: {timeout_s: 9}\n")
        told = daemon.hermes("reload").stdout.splitlines()
        assert told == [
            "sessions.max_queue: 32 -> 7",
            "These take effect after `hermes restart`:",
            "  terminal.timeout_s: 180.0 -> 9.0",
            told[-1],
        ]
        assert daemon.hermes("reload").stdout.splitlines() == told[1:]
        file.write_text("tools:\n  cli: [termnal]\n")
        done = daemon.hermes("reload")
        assert (done.returncode, done.stdout) == (78, "")
        assert "the old one stays: " in done.stderr
        assert "config.yaml:2:8: tools.cli: there is no tool or toolset 'termnal'" in done.stderr


def test_reload_reports_a_variable_missing_in_the_daemon() -> None:
    with DaemonProcess(environ={"A_KEY": ""}) as daemon:
        assert daemon.process is not None
        pid = daemon.process.pid
        (daemon.home / "config.yaml").write_text("model: {provider: openai, name: m, api_key_env: A_KEY}\n")
        for command in ("reload", "restart"):
            told = " ".join(daemon.hermes(command).stderr.split())
            assert "the environment variable A_KEY (model.api_key_env) is not set" in told
            assert f"The daemon (pid {pid}) was started without A_KEY, and a restart keeps its environment" in told


def test_new_contents_of_a_key_file_are_in_force_after_a_reload() -> None:
    with ScriptedModel() as model, DaemonProcess() as daemon:
        key = daemon.home / "model.key"
        key.write_text("sk-wrong\n")
        settings = model.config.replace('api_key_env: ""', "api_key_file: model.key")
        (daemon.home / "config.yaml").write_text(settings)
        assert daemon.hermes("reload").returncode == 0
        assert daemon.ask("say hello").status == 200
        key.write_text("sk-right\n")
        assert daemon.hermes("reload").stdout.splitlines()[0] == "model.api_key_file: the file has new contents"
        assert daemon.ask("say hello").status == 200
        sent = [headers.get("Authorization") for headers in model.server.headers]
        assert (sent[0], sent[-1]) == ("Bearer sk-wrong", "Bearer sk-right")
        assert daemon.hermes("reload").stdout.splitlines()[0] == "Nothing has changed."


def test_an_api_key_with_a_new_value_needs_a_restart() -> None:
    with DaemonProcess() as daemon:
        (daemon.home / "api.key").write_text("b" * 32)
        for _ in range(2):  # each time, as long as it is not in force
            assert daemon.hermes("reload").stdout.splitlines()[:2] == [
                "These take effect after `hermes restart`:",
                "  api.key_file: the file has new contents",
            ]
        assert daemon.hermes("restart").returncode == 0
        assert daemon.hermes("reload").stdout.splitlines()[0] == "Nothing has changed."


def test_digests_tell_which_files_were_rewritten() -> None:
    before = {"model.api_key_file": "1", "telegram.token_file": "1", "slack.tokens_file": "1"}
    after = {"model.api_key_file": "2", "telegram.token_file": "2", "slack.tokens_file": "1", "api.key_file": "1"}
    found = rewritten(before, after, {"api.key_file": None})
    assert found == Rewritten(applied=("model.api_key_file",), needs_restart=("telegram.token_file",))
    assert in_force(before, after) == {**before, "model.api_key_file": "2", "api.key_file": "1"}


def test_setup_doctor_and_model_set_compare_with_the_running_daemon() -> None:
    with ScriptedModel() as model, DaemonProcess() as daemon:
        address = ("--provider", "custom", "--base-url", model.server.base_url)
        done = daemon.hermes("setup", "--non-interactive", *address, "--model", "scripted", "--json")
        assert (done.returncode, json.loads(done.stdout)["daemon_reloaded"]) == (0, True)
        assert json.loads(daemon.hermes("status", "--json").stdout)["model"] == "scripted"
        same = daemon.hermes("model", "set", "scripted", "--no-check")
        assert (same.returncode, "hermes reload" in same.stdout) == (0, False)
        assert _configuration_check(daemon)["status"] == "ok"
        other = daemon.hermes("model", "set", "other", "--no-check")
        assert (other.returncode, "hermes reload" in other.stdout) == (0, True)
        found = _configuration_check(daemon)
        assert (found["status"], found["remedy"]) == ("warning", "Run `hermes reload`.")
        assert "model.name" in found["text"]
        assert json.loads(daemon.hermes("status", "--json").stdout)["model"] == "scripted"  # nothing was applied


def _configuration_check(daemon: DaemonProcess) -> dict[str, str]:
    report = json.loads(daemon.hermes("doctor", "--json").stdout)
    (found,) = [each for each in report["checks"] if each["id"] == "daemon.config"]
    return dict(found)


def test_setup_says_what_to_type_if_the_daemon_refuses_the_reload(home: Home, admin: FakeAdmin) -> None:
    error = {"error": {"message": "no", "code": "bad_configuration"}}
    admin.routes["POST /reload"] = Answer(body=error, status=400)
    with lock(home):
        accepted, text = reload_running(home)
    assert (accepted, "`hermes reload`" in text) == (False, True)
    assert reload_running(home) == (None, "")
