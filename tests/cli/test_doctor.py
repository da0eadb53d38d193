"""`hermes doctor`."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from hermes.cli.doctor.finding import CheckResult, Status
from hermes.cli.doctor.live_checks import daemon_findings
from hermes.cli.doctor.machine_checks import clock_finding, disk_finding, python_finding
from hermes.cli.main import main
from hermes.config.home import Home, lock, prepare
from tests.cli.conftest import Hermes
from tests.support.scripted_model import ScriptedModel
from tests.support.telegram_server import TOKEN, TelegramServer

NOW = 1_790_000_000.0


@pytest.fixture(autouse=True)
def without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "TELEGRAM_BOT_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as server:
        yield server


def checks(capsys: pytest.CaptureFixture[str], *options: str, code: int | None = None) -> dict[str, dict[str, Any]]:
    found = main(["doctor", "--json", *options])
    report = json.loads(capsys.readouterr().out)
    assert found == (0 if report["ok"] else 1)
    assert code is None or found == code
    return {each["id"]: each for each in report["checks"]}


def test_a_fresh_machine_has_no_failure_but_the_sandbox(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    prepare(home)
    found = checks(capsys)
    assert {name for name, each in found.items() if each["status"] == "failed"} <= {"sandbox.bubblewrap"}
    assert found["config.valid"]["status"] == "ok"
    assert found["model.endpoint"]["status"] == "warning"
    assert found["daemon.health"]["status"] == "warning"
    assert found["service.unit"]["status"] == "skipped"
    for each in found.values():
        assert each["text"].endswith(".")
        assert bool(each["remedy"]) == (each["status"] in ("warning", "failed")), each


def test_a_bad_configuration_fails_and_skips_what_needs_it(home: Home, hermes: Hermes) -> None:
    home.config_file.write_text("api: {prot: 1}\n")
    done = hermes("doctor")
    assert done.returncode == 1
    assert "?." not in done.stdout
    assert "failed   config.valid: " in done.stdout
    assert "did you mean api.port?" in done.stdout
    assert "skipped  model.endpoint: " in done.stdout


def test_fix_closes_keys_and_removes_what_a_dead_daemon_left(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    prepare(home)
    home.log_dir.rmdir()
    home.api_key_file.write_text("secret")
    home.api_key_file.chmod(0o644)
    home.data_dir.chmod(0o770)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(home.socket))
    found = checks(capsys, code=1)
    assert found["home.permissions"]["status"] == "failed"
    assert found["home.lock"]["status"] == "warning"
    assert home.socket.exists()
    found = checks(capsys, "--fix")
    assert {name for name, each in found.items() if each["fixed"]} == {
        "home.permissions",
        "home.lock",
        "home.directory",
    }
    assert home.api_key_file.stat().st_mode & 0o777 == 0o600
    assert home.data_dir.stat().st_mode & 0o777 == 0o700
    assert (home.socket.exists(), home.log_dir.is_dir()) == (False, True)
    assert not any(each["fixed"] for each in checks(capsys, "--fix").values())


def test_fix_leaves_the_socket_of_a_live_daemon(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    prepare(home)
    home.socket.touch()
    with lock(home):
        assert checks(capsys, "--fix")["home.lock"]["status"] == "ok"
    assert home.socket.exists()


def test_the_model_is_asked(home: Home, model: ScriptedModel, capsys: pytest.CaptureFixture[str]) -> None:
    home.config_file.write_text(model.config)
    assert checks(capsys)["model.endpoint"]["status"] == "ok"
    assert len(model.requests) == 1


def test_a_model_that_cannot_be_reached_fails_with_a_remedy(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.config_file.write_text(
        'model: {provider: openai, name: x, base_url: "http://127.0.0.1:9/v1", api_key_env: ""}\n'
    )
    found = checks(capsys, code=1)["model.endpoint"]
    assert (found["status"], "127.0.0.1:9" in found["text"]) == ("failed", True)
    assert "model.base_url" in found["remedy"]


def test_tokens_of_platforms_are_checked_there(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with TelegramServer() as server:
        home.config_file.write_text(f"telegram: {{enabled: true, base_url: '{server.base_url}'}}\n")
        monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN)
        assert checks(capsys)["platform.telegram"]["status"] == "ok"
        monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "123:wrong-token-of-nobody-in-particular")
        found = checks(capsys, code=1)["platform.telegram"]
    assert found["status"] == "failed"
    assert "hermes setup telegram" in found["remedy"]
    assert "wrong-token" not in json.dumps(found)


def _statuses(*findings: CheckResult) -> list[Status]:
    return [each.status for each in findings]


def test_limits_of_the_machine() -> None:
    assert _statuses(*(disk_finding(free, "/x") for free in (1 << 20, 500 << 20, 1 << 40))) == [
        Status.FAILED, Status.WARNING, Status.OK,
    ]  # fmt: skip
    assert _statuses(clock_finding(0.0, 0.0), clock_finding(NOW, NOW + 3600), clock_finding(NOW, NOW)) == [
        Status.FAILED, Status.FAILED, Status.OK,
    ]  # fmt: skip
    assert _statuses(python_finding((3, 10, 1), "p"), python_finding((3, 11, 0), "p")) == [Status.FAILED, Status.OK]


def test_state_of_the_daemon_is_judged() -> None:
    info: dict[str, Any] = {"ready": False, "reason": "stopping", "pid": 1, "version": "0.0.0", "platforms": []}
    info["platforms"] = [{"name": "telegram", "state": "running", "problem": "no network"}]
    found = {each.id: each.status for each in daemon_findings(info)}
    assert found == {
        "daemon.health": Status.FAILED,
        "daemon.version": Status.WARNING,
        "daemon.telegram": Status.WARNING,
    }
