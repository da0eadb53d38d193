"""From the configuration to a connection with Telegram, or to words about what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.app.factories.telegram import make_telegram
from hermes.config.home import Home
from hermes.config.loader import load_config
from hermes.config.platforms.telegram import TelegramConfig
from hermes.config.settings import Config
from hermes.domain.errors import ConfigError
from tests.support.telegram_server import TOKEN


def test_without_being_asked_there_is_none() -> None:
    assert make_telegram(Config(), {"TELEGRAM_BOT_TOKEN": TOKEN}) is None


def test_the_token_comes_from_the_environment_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n", encoding="ascii")
    from_file = TelegramConfig(enabled=True, token_file=str(tmp_path / "token"))
    assert from_file.token({}).reveal() == TOKEN
    adapter = make_telegram(Config(telegram=TelegramConfig(enabled=True)), {"TELEGRAM_BOT_TOKEN": TOKEN})
    assert adapter is not None
    assert adapter.platform.name == "telegram"


def test_a_missing_token_is_explained() -> None:
    with pytest.raises(ConfigError, match=r"set the environment variable TELEGRAM_BOT_TOKEN or telegram\.token_file"):
        make_telegram(Config(telegram=TelegramConfig(enabled=True)), {})


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("allowed_users: [ann]", "numeric user ids"),
        ("free_response_chats: [friends]", "numeric ids: CHAT, or CHAT:TOPIC"),
        ("allowed_chats: ['7']", "which begin with a minus; people go into allowed_users"),
        ("open_chats: [friends]", "numeric ids of groups: -CHAT, or -CHAT:TOPIC"),
        ("open_chats: ['*']", "numeric ids of groups"),
        ("base_url: telegram.example", "must be an address like"),
        ("token: abc", "telegram.token_file"),
    ],
)
def test_a_mistake_in_the_settings_is_explained(setting: str, problem: str, tmp_path: Path) -> None:
    home = Home(data_dir=tmp_path, config_file=tmp_path / "config.yaml")
    home.config_file.write_text(f"telegram: {{{setting}}}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=problem):
        load_config(home, {})
