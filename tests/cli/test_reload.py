"""`hermes reload`: what changed, what needs a restart, or what is wrong."""

from __future__ import annotations

import json

import pytest

from hermes.cli.main import main
from tests.cli.fake_admin import Answer, FakeAdmin
from tests.daemon_process import DaemonProcess


def test_what_changed_is_told_line_by_line(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    answer = {"applied": {"log.level": ["INFO", "DEBUG"]}, "needs_restart": {"api.port": [1, 2]}}
    admin.routes["POST /reload"] = Answer(body=answer)
    assert main(["reload"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        'log.level: "INFO" -> "DEBUG"',
        "Only after `hermes restart`:",
        "  api.port: 1 -> 2",
    ]
    assert main(["reload", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == answer
    admin.routes["POST /reload"] = Answer(body={"applied": {}, "needs_restart": {}})
    assert main(["reload"]) == 0
    assert capsys.readouterr().out == "Nothing has changed.\n"


def test_a_real_daemon_takes_what_it_can_and_says_the_rest_each_time() -> None:
    with DaemonProcess() as daemon:
        file = daemon.home / "config.yaml"
        assert daemon.hermes("reload").stdout == "Nothing has changed.\n"
        file.write_text("sessions: {max_queue: 7}\nterminal: {timeout_s: 9}\n")
        told = daemon.hermes("reload").stdout.splitlines()
        assert told == [
            "sessions.max_queue: 32 -> 7",
            "Only after `hermes restart`:",
            "  terminal.timeout_s: 180.0 -> 9.0",
        ]
        assert daemon.hermes("reload").stdout.splitlines() == told[1:]
        file.write_text("tools:\n  cli: [termnal]\n")
        done = daemon.hermes("reload")
        assert (done.returncode, done.stdout) == (78, "")
        assert "the old one stays: " in done.stderr
        assert "config.yaml:2:8: tools.cli: there is no tool or toolset 'termnal'" in done.stderr
