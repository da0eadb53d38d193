"""`hermes model` against a fake endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hermes.cli.main import main
from hermes.config.home import Home
from hermes.config.providers import PROVIDERS
from tests.support.model_server import DONE, delta, stream, usage
from tests.support.scripted_model import ScriptedModel


@pytest.fixture
def endpoint() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        model.server.models = [{"id": "scripted", "context_length": 4096}, {"id": "other"}]
        yield model


@pytest.fixture
def configured(home: Home, endpoint: ScriptedModel) -> ScriptedModel:
    home.config_file.parent.mkdir(parents=True, exist_ok=True)
    home.config_file.write_text(f"# mine\n{endpoint.config}", encoding="utf-8")
    return endpoint


def test_the_configured_model_is_shown(hermes: Any, home: Home) -> None:
    home.config_file.write_text("model: {provider: anthropic, name: claude-sonnet-4-5}\n", encoding="utf-8")
    shown = json.loads(hermes("model", "--json").stdout)
    assert (shown["provider"], shown["protocol"], shown["context_window"]) == ("anthropic", "messages", 200_000)
    assert shown["price"] == {"input": 3.0, "cached_input": 0.3, "output": 15.0}
    assert shown["missing_variables"] == ["ANTHROPIC_API_KEY"]
    assert "claude-sonnet-4-5" in hermes("model").stdout


def test_every_provider_is_listed_with_its_key(hermes: Any) -> None:
    found = json.loads(hermes("model", "providers", "--json", GROQ_API_KEY="x").stdout)["providers"]
    assert {each["provider"]: each["key_set"] for each in found}.keys() == PROVIDERS.keys()
    assert {each["provider"] for each in found if each["key_set"]} >= {"groq"}
    assert "OPENROUTER_API_KEY" in hermes("model", "providers").stdout


@pytest.mark.usefixtures("configured")
def test_the_endpoints_models_are_listed(hermes: Any) -> None:
    found = json.loads(hermes("model", "list", "--json").stdout)
    assert [(each["model"], each["context_window"]) for each in found["models"]] == [
        ("other", None),
        ("scripted", 4096),
    ]
    known = json.loads(hermes("model", "list", "openai", "--known", "--json").stdout)
    assert any(each["price"] for each in known["models"])


def test_a_model_is_checked_with_one_call_and_set(hermes: Any, home: Home, configured: ScriptedModel) -> None:
    assert json.loads(hermes("model", "check", "--json").stdout)["ok"] is True
    assert hermes("model", "set", "other").returncode == 0
    assert [each["model"] for each in configured.requests] == ["scripted", "other"]
    text = home.config_file.read_text(encoding="utf-8")
    assert text.startswith("# mine\n")
    assert json.loads(hermes("config", "get", "model.name", "--json").stdout)["value"] == "other"


def test_answer_cut_by_the_output_limit_counts_and_is_explained(
    hermes: Any, home: Home, configured: ScriptedModel
) -> None:
    thought = stream(delta(reasoning_content="Hm, one word"), delta("length"), usage(10, 5), DONE)
    configured.on_request = lambda _: thought
    checked = json.loads(hermes("model", "check", "--json").stdout)
    assert (checked["ok"], checked["answer"], checked["problem"]) == (True, "", None)
    assert "output limit" in checked["remark"]
    shown = hermes("model", "set", "other")
    assert (shown.returncode, "It works" in shown.stdout) == (0, True)
    found = json.loads(hermes("doctor", "--json").stdout)["checks"]
    [finding] = [each for each in found if each["id"] == "model.endpoint"]
    assert finding["status"] == "ok"
    assert "output limit" in finding["text"]
    provider = ("--provider", "custom", "--base-url", configured.server.base_url, "--model", "scripted")
    assert "output limit" in hermes("setup", "--non-interactive", "--force", *provider).stdout


@pytest.mark.parametrize("parts", [(), (delta(reasoning_content="Hm"),), (delta(content=" \n"),)])
def test_answer_without_text_is_a_problem(hermes: Any, configured: ScriptedModel, parts: tuple[bytes, ...]) -> None:
    configured.on_request = lambda _: stream(*parts, delta("stop"), usage(10, 5), DONE)
    checked = json.loads(hermes("model", "check", "--json").stdout)
    assert (checked["ok"], "without any text" in checked["problem"]) == (False, True)


@pytest.mark.usefixtures("configured")
def test_a_model_that_does_not_answer_is_not_set(hermes: Any, home: Home) -> None:
    before = home.config_file.read_text(encoding="utf-8")
    refused = hermes("model", "set", "vllm:gone")  # no server there
    assert refused.returncode == 1
    assert home.config_file.read_text(encoding="utf-8") == before
    assert hermes("model", "set", "vllm:gone", "--no-check").returncode == 0
    shown = json.loads(hermes("model", "show", "--json").stdout)
    assert (shown["provider"], shown["base_url"]) == ("vllm", "http://127.0.0.1:8000/v1")


@pytest.mark.usefixtures("configured")
def test_the_offline_model_is_chosen_by_its_name_alone(hermes: Any) -> None:
    assert hermes("model", "set", "offline").returncode == 0
    shown = json.loads(hermes("model", "show", "--json").stdout)
    assert (shown["provider"], shown["model"], shown["base_url"]) == ("offline", "offline", "")


@pytest.mark.parametrize("name", ["gpt-5", "opanai:gpt-5"])
def test_another_name_for_the_offline_model_is_refused(hermes: Any, home: Home, name: str) -> None:
    for action in ("set", "check"):
        refused = hermes("model", action, name)
        assert refused.returncode == 78
        assert f"{name} names no known provider" in refused.stderr
    assert not home.config_file.exists()
    assert hermes("model", "set", "offline").returncode == 0


def test_no_known_models_are_reported(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "list", "ollama", "--known"]) == 0
    assert capsys.readouterr().out == "No model of ollama is known without asking; omit --known.\n"


def type_lines(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """Answer the questions of a command with these lines, as on a terminal."""
    left = list(lines)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _prompt: left.pop(0))


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize("answers", [("openai", "1"), ("1", "OTH", "1"), ("nowhere", "openai", "other")])
def test_a_model_is_picked_from_the_live_list(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answers: tuple[str, ...]
) -> None:
    type_lines(monkeypatch, *answers)
    assert main(["model"]) == 0
    shown = capsys.readouterr().out
    assert "4,096" in shown
    assert "openai:other answered" in shown
    text = home.config_file.read_text(encoding="utf-8")
    assert text.startswith("# mine\n")
    assert "other" in text


@pytest.mark.usefixtures("configured")
def test_enter_keeps_the_model(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    before = home.config_file.read_text(encoding="utf-8")
    type_lines(monkeypatch, "")
    assert main(["model"]) == 0
    type_lines(monkeypatch, "openai", "")
    assert main(["model"]) == 0
    assert home.config_file.read_text(encoding="utf-8") == before
