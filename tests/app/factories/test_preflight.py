"""The one check of a configuration: whatever would keep a daemon from its start, with its place."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hermes.app.factories.preflight import preflight
from hermes.config.home import Home
from hermes.domain.errors import ConfigError


def problems(tmp_path: Path, text: str, **environ: str) -> list[str]:
    home = Home(data_dir=tmp_path, config_file=tmp_path / "config.yaml")
    home.config_file.write_text(text, encoding="utf-8")
    try:
        preflight(home, environ)
    except ConfigError as error:
        return [problem.replace(str(home.config_file), "config.yaml") for problem in error.problems]
    return []


def test_a_configuration_in_order_is_cleared_and_nothing_is_made(tmp_path: Path) -> None:
    assert problems(tmp_path, "telegram: {enabled: true}\n", TELEGRAM_BOT_TOKEN="123456:abc") == []
    assert [each.name for each in tmp_path.iterdir()] == ["config.yaml"]


def test_what_is_missing_is_named_with_the_line_that_asks_for_it(tmp_path: Path) -> None:
    text = "model:\n  provider: openai\n  name: m\ntelegram:\n  enabled: true\nslack:\n  enabled: true\n"
    model, telegram, slack = problems(tmp_path, text)
    assert model.startswith("config.yaml:2:3: the model's key is missing")
    assert telegram.startswith("config.yaml:5:3: the Telegram bot's token is missing")
    assert slack.startswith("config.yaml:7:3: the Slack bot's token is missing")


@pytest.mark.parametrize(
    ("platform", "module"),
    [("telegram", "hermes.adapters.telegram.adapter"), ("slack", "hermes.adapters.slack.adapter")],
)
def test_missing_extra_is_reported_with_the_missing_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # as if it could not be imported
    token, extra = problems(tmp_path, f"{platform}:\n  enabled: true\n")
    assert "token is missing" in token
    assert extra.startswith(f"config.yaml:2:3: {platform}.enabled needs the package")
    assert "pip install" in extra


def test_keys_that_only_chats_need_are_not_asked_for_without_them(tmp_path: Path) -> None:
    text = "transcription: {base_url: 'http://localhost/v1', api_key_env: WHISPER_KEY}\n"
    assert problems(tmp_path, text) == []
    (found,) = problems(tmp_path, text + "telegram: {enabled: true}\n", TELEGRAM_BOT_TOKEN="123456:abc")
    assert "the transcription's key is missing" in found


def test_a_web_search_that_cannot_work_is_a_problem(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "web: {search_provider: searxng}\n")
    assert "web.search_base_url" in found
    assert problems(tmp_path, "web: {search_provider: searxng, search_base_url: 'http://127.0.0.1:8888'}\n") == []
    (found,) = problems(tmp_path, "web: {search_provider: brave}\n")
    assert "BRAVE_SEARCH_API_KEY" in found
    assert problems(tmp_path, "web: {search_provider: brave}\n", BRAVE_SEARCH_API_KEY="k") == []
    (tmp_path / "search.key").write_text("k\n")
    assert problems(tmp_path, "web: {search_provider: exa, search_api_key_file: search.key}\n") == []


def test_an_api_key_that_the_start_would_refuse_is_a_problem_too(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "", HERMES_API_KEY="short")
    assert "HERMES_API_KEY" in found
    key = tmp_path / "api.key"
    key.write_text("0123456789abcdef")
    key.chmod(0o644)
    (found,) = problems(tmp_path, "")
    assert "chmod 600" in found


def test_misspelt_tool_is_reported_with_its_line_and_a_suggestion(tmp_path: Path) -> None:
    assert problems(tmp_path, "tools:\n  cli: [termnal]\n") == [
        "config.yaml:2:8: tools.cli: there is no tool or toolset 'termnal'; did you mean terminal?"
    ]


@pytest.mark.parametrize("path", ["/", "/home", "/proc", "/home/agent"])
def test_opened_directory_that_would_hide_a_place_of_the_sandbox_is_refused(tmp_path: Path, path: str) -> None:
    (found,) = problems(tmp_path, f"sandbox:\n  read_paths: [{path}]\n")
    assert found.startswith(f"config.yaml:2:3: sandbox.read_paths: {path} would hide ")
    assert problems(tmp_path, f"sandbox:\n  mode: off\n  read_paths: [{path}]\n") == []


def test_opened_directory_behind_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/home")
    (found,) = problems(tmp_path, f"sandbox:\n  write_paths: [{tmp_path}/link]\n")
    assert "sandbox.write_paths" in found
    assert problems(tmp_path, f"sandbox:\n  write_paths: [{tmp_path}, /tmp, /srv]\n") == []
