"""From the configuration to a connection with Slack, or to words about what is missing; and the app's description."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from hermes.adapters.slack.command_sign import slash_text
from hermes.adapters.slack.manifest import manifest
from hermes.app.factories.slack import make_slack, tokens
from hermes.cli.main import main
from hermes.config.home import Home
from hermes.config.loader import load_config
from hermes.config.platforms.slack import SlackConfig
from hermes.config.settings import Config
from hermes.domain.errors import ConfigError
from hermes.services.commands.registry import COMMANDS, Parsed, parse
from tests.support.slack_server import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET

SOCKET = SlackConfig(enabled=True)
HTTP = SlackConfig(enabled=True, transport="http", port=0)


def test_without_being_asked_there_is_none() -> None:
    assert make_slack(Config(), {"SLACK_BOT_TOKEN": BOT_TOKEN}) is None


def test_tokens_come_from_the_environment_for_several_workspaces() -> None:
    found = tokens(SOCKET, {"SLACK_BOT_TOKEN": "xoxb-1, xoxb-2", "SLACK_APP_TOKEN": APP_TOKEN})
    assert [each.bot_token.reveal() for each in found] == ["xoxb-1", "xoxb-2"]
    assert {each.app_token.reveal() for each in found if each.app_token} == {APP_TOKEN}


async def test_an_adapter_is_made_for_each_way_in() -> None:
    environ = {"SLACK_BOT_TOKEN": BOT_TOKEN, "SLACK_APP_TOKEN": APP_TOKEN, "SLACK_SIGNING_SECRET": SIGNING_SECRET}
    for settings in (SOCKET, HTTP):
        adapter = make_slack(Config(slack=settings), environ)
        assert adapter is not None
        assert adapter.platform.name == "slack"
        await adapter.close()


def test_tokens_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    entries = [{"bot_token": "xoxb-1", "app_token": "xapp-1"}, {"bot_token": "xoxb-2", "app_token": "xapp-2"}]
    path.write_text(yaml.safe_dump(entries), encoding="utf-8")
    found = tokens(SlackConfig(enabled=True, tokens_file=str(path)), {"SLACK_BOT_TOKEN": "other"})
    assert [each.app_token.reveal() for each in found if each.app_token] == ["xapp-1", "xapp-2"]


@pytest.mark.parametrize(
    "content", ["", "xoxb-secret", "- xoxb-secret", "- {bot_tokn: xoxb-secret}", "[{: xoxb-secret"]
)
def test_a_file_that_holds_no_tokens_is_explained_without_being_shown(content: str, tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"slack\.tokens_file") as caught:
        tokens(SlackConfig(enabled=True, tokens_file=str(path)), {})
    assert "xoxb-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "environ", "problem"),
    [
        (SOCKET, {}, "set the environment variable SLACK_BOT_TOKEN"),
        (SOCKET, {"SLACK_BOT_TOKEN": BOT_TOKEN}, "set SLACK_APP_TOKEN"),
        (HTTP, {"SLACK_BOT_TOKEN": BOT_TOKEN}, "set SLACK_SIGNING_SECRET"),
    ],
)
def test_a_missing_secret_is_explained(settings: SlackConfig, environ: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        make_slack(Config(slack=settings), environ)


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("allowed_users: [ann]", "user ids like"),
        ("free_response_channels: [general]", "channel ids like"),
        ("allowed_channels: [D024BE7LH]", "channel ids like"),
        ("open_channels: ['*']", "channel ids like"),
        ("transport: rtm", "socket, http"),
        ("bot_token: abc", "slack"),
    ],
)
def test_a_mistake_in_the_settings_is_explained(setting: str, problem: str, tmp_path: Path) -> None:
    home = Home(data_dir=tmp_path, config_file=tmp_path / "config.yaml")
    home.config_file.write_text(f"slack: {{{setting}}}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=problem):
        load_config(home, {})


def test_the_manifest_is_printed_as_yaml_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["slack", "manifest", "--name", "Ada"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == manifest("Ada")
    assert main(["slack", "manifest", "--json", "--url", "https://a.example/slack/events"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["settings"]["socket_mode_enabled"] is False
    assert printed["settings"]["event_subscriptions"]["request_url"] == "https://a.example/slack/events"
    assert printed["features"]["slash_commands"][0]["url"] == "https://a.example/slack/events"


def test_the_manifest_asks_for_an_assistant_only_when_it_is_wanted() -> None:
    assert "assistant:write" not in manifest()["oauth_config"]["scopes"]["bot"]
    assert "assistant:write" in manifest(assistant=True)["oauth_config"]["scopes"]["bot"]


def test_the_manifest_can_list_each_command_by_its_own_name_and_all_of_them_are_understood(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["slack", "manifest", "--json", "--all-commands", "--url", "https://a.example/x"]) == 0
    listed = json.loads(capsys.readouterr().out)["features"]["slash_commands"]
    names = [each["command"] for each in listed]
    assert {"/hermes", "/new", "/hermes-status", "/hermes-help"} <= set(names)
    assert not {"/status", "/help"} & set(names)  # Slack's own
    assert len(names) == len(set(names)) == len(COMMANDS) + 1 <= 50
    assert all(each["url"] == "https://a.example/x" and each.get("usage_hint", "-") for each in listed)
    for name, command in zip(names[1:], COMMANDS, strict=True):
        assert parse(slash_text(name, "")) == Parsed(command=command)
    assert slash_text("/hermes-title", " a &amp; b ") == "/title a & b"
