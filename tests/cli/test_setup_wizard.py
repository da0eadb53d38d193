"""`hermes setup` without a platform: detection, unattended and interactive set-up of the model."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hermes.cli.setup.detection import detect
from hermes.config.home import Home
from hermes.config.loader import load_config
from tests.cli.conftest import Hermes, command
from tests.cli.test_setup import until_shown
from tests.support.scripted_model import ScriptedModel

BEFORE = "# mine\nlog:\n  level: DEBUG  # loud\n"


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as server:
        yield server


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_TOKEN")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("person")))


def options(model: ScriptedModel) -> tuple[str, ...]:
    return ("setup", "--non-interactive", "--provider", "custom", "--base-url", model.server.base_url)


def test_unattended_setup_asks_the_model_and_writes_it(home: Home, model: ScriptedModel, hermes: Hermes) -> None:
    home.config_file.write_text(BEFORE)
    done = hermes(*options(model), "--model", "scripted", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["model"] == "scripted"
    assert len(model.requests) == 1
    assert home.config_file.read_text().startswith(BEFORE)
    config = load_config(home, {}).model
    assert (config.provider, config.name, config.base_url) == ("custom", "scripted", model.server.base_url)
    assert hermes("chat", "-z", "say hello").stdout == "hello\n"


def test_address_without_v1_is_completed(home: Home, model: ScriptedModel, hermes: Hermes) -> None:
    root = model.server.base_url.removesuffix("/v1")
    assert root != model.server.base_url
    done = hermes("setup", "--non-interactive", "--provider", "custom", "--base-url", root, "--model", "scripted")
    assert done.returncode == 0, done.stderr
    assert load_config(home, {}).model.base_url == model.server.base_url


def test_a_model_that_is_set_up_stays(home: Home, model: ScriptedModel, hermes: Hermes) -> None:
    home.config_file.write_text(model.config)
    kept = hermes("setup", "--non-interactive", "--json")
    assert (kept.returncode, json.loads(kept.stdout)["kept"]) == (0, True)
    refused = hermes(*options(model), "--model", "other")
    assert (refused.returncode, "--force replaces it" in refused.stderr) == (78, True)
    assert home.config_file.read_text() == model.config
    assert hermes(*options(model), "--model", "other", "--force").returncode == 0
    assert load_config(home, {}).model.name == "other"


def test_a_model_that_does_not_answer_changes_nothing(home: Home, hermes: Hermes) -> None:
    done = hermes(
        "setup", "--non-interactive", "--provider", "custom", "--base-url", "http://127.0.0.1:9/v1", "--model", "x"
    )
    assert done.returncode == 75
    assert "127.0.0.1:9" in done.stderr
    assert not home.config_file.exists()


def test_an_empty_key_variable_means_no_key(home: Home, model: ScriptedModel, hermes: Hermes) -> None:
    address = ("--base-url", model.server.base_url, "--model", "scripted")
    done = hermes("setup", "--non-interactive", "--provider", "openai", *address, "--api-key-env", "")
    assert done.returncode == 0, done.stderr
    assert load_config(home, {}).model.api_key_env == ""


class _RefusesKeys(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_a_wrong_key_is_a_mistake_of_the_configuration(home: Home, hermes: Hermes) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _RefusesKeys) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/v1"
        done = hermes("setup", "--non-interactive", "--provider", "custom", "--base-url", address, "--model", "x")
        server.shutdown()
    assert done.returncode == 78
    assert not home.config_file.exists()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "no model was found"),
        (["--provider", "anthropc", "--model", "x"], "did you mean anthropic?"),
        (["--provider", "custom", "--model", "x"], "custom needs --base-url URL"),
        (["--provider", "custom", "--base-url", "host", "--model", "x"], "--base-url: must be an address"),
        (["--provider", "openai", "--model", "[x]"], "--model: must not contain"),
        (["--provider", "openai", "--model", "x", "--api-key-env", "sk-1"], "--api-key-env: must be names"),
        (["--provider", "custom", "--base-url", "http://127.0.0.1:9/v1"], "name a model of custom with --model"),
    ],
)
def test_what_is_missing_is_named(home: Home, hermes: Hermes, argv: list[str], said: str) -> None:
    done = hermes("setup", "--non-interactive", *argv)
    assert (done.returncode, said in done.stderr) == (78, True)
    assert not home.config_file.exists()


def test_a_key_file_is_copied_privately(home: Home, model: ScriptedModel, hermes: Hermes, tmp_path: Path) -> None:
    key = tmp_path.parent / f"{tmp_path.name}.given"
    key.write_text("sk-canary-0123456789\n")
    done = hermes(*options(model), "--model", "scripted", "--api-key-file", str(key))
    assert done.returncode == 0, done.stderr
    stored = home.data_dir / "model.key"
    assert (stored.read_text(), stored.stat().st_mode & 0o777) == ("sk-canary-0123456789\n", 0o600)
    assert "canary" not in done.stdout + done.stderr + home.config_file.read_text()


def set_up_by_hand(model: ScriptedModel) -> str:
    """Answer every question of `hermes setup` on a terminal. Return the end of what it prints."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        command("setup"),
        stdin=child,
        stdout=child,
        stderr=child,
        start_new_session=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    os.close(child)
    try:
        for prompt, typed in (
            ("or skip [skip]: ", "custom"),
            ("/v1: ", model.server.base_url),
            ("(hidden): ", ""),
            ("by number or name", "scripted"),
            ("separated by commas [none]: ", "web"),
            ("Set up Telegram? [y/N] ", "n"),
            ("Set up Slack? [y/N] ", "n"),
        ):
            until_shown(parent, prompt)
            os.write(parent, f"{typed}\n".encode())
        end = until_shown(parent, "starts a conversation")
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(parent)
    return end


def test_interactive_setup_walks_through_every_step(home: Home, model: ScriptedModel) -> None:
    home.config_file.write_text(BEFORE)
    set_up_by_hand(model)
    config = load_config(home, {})
    assert (config.model.name, config.tools.disabled) == ("scripted", ("web",))
    assert home.config_file.read_text().startswith(BEFORE)
    assert model.requests


def test_interactive_setup_reloads_the_running_daemon(home: Home, model: ScriptedModel, hermes: Hermes) -> None:
    environ = {**os.environ, "HERMES_API_PORT": "0"}
    with subprocess.Popen(command("daemon"), env=environ, stdout=subprocess.PIPE, text=True) as daemon:
        try:
            assert daemon.stdout is not None
            assert "(model: offline)" in daemon.stdout.readline()
            end = set_up_by_hand(model)
            assert "restart" in end  # the choice of tools takes effect after it
            assert hermes("chat", "-z", "say hello").stdout == "hello\n"
        finally:
            daemon.kill()


def test_keys_servers_and_other_homes_are_found(tmp_path: Path) -> None:
    agent, claw = tmp_path / ".hermes", tmp_path / ".openclaw"
    agent.mkdir()
    claw.mkdir()
    (agent / "config.yaml").write_text("model:\n  default: some/model\n  provider: openrouter\n")
    (agent / ".env").write_text("# keys\nexport OPENROUTER_API_KEY='sk-canary'\n")
    (claw / "openclaw.json").write_text(
        json.dumps({"agents": {"defaults": {"model": {"primary": "anthropic/claude-sonnet-4-5"}}}})
    )
    listed = {"http://127.0.0.1:11434/v1": ["tiny"]}
    found = detect({"OPENAI_API_KEY": "sk-x"}, tmp_path, listed.get)
    assert [(each.provider, each.name) for each in found] == [
        ("openai", "gpt-5"),
        ("ollama", "tiny"),
        ("openrouter", "some/model"),
        ("anthropic", "claude-sonnet-4-5"),
    ]
    assert found[2].key is not None
    assert found[2].key.reveal() == "sk-canary"
    assert "canary" not in repr(found)


@pytest.mark.parametrize("content", ["", "model: [", "- a", "model: {default: x, provider: unknown}", "\x00"])
def test_other_homes_that_cannot_be_used_are_ignored(tmp_path: Path, content: str) -> None:
    for name, file in ((".hermes", "config.yaml"), (".openclaw", "openclaw.json")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text(content)
    assert detect({}, tmp_path, lambda _address: None) == []
