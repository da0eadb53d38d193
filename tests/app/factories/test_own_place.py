"""What the gates of tools know of the daemon: its ports, its names, and its files outside the home."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hermes.app.factories.own_place import own_address, secret_paths
from hermes.config.home import Home
from hermes.config.settings import Config
from hermes.system import own_ports


def test_open_ports_and_configured_ones_are_known() -> None:
    config = Config()
    config = replace(config, api=replace(config.api, port=0, host="10.0.0.5"))
    own_ports.opened(45_001)
    try:
        found = own_address(config)
    finally:
        own_ports.closed(45_001)
    assert 45_001 in found.ports
    assert not found.ports & {0, config.slack.port, config.telegram.webhook_port}, "nothing listens there"
    assert "10.0.0.5" in found.hosts


def test_ports_of_chat_platforms_are_known() -> None:
    config = Config()
    slack = replace(config.slack, enabled=True, transport="http", port=9001)
    telegram = replace(config.telegram, enabled=True, webhook_url="https://x.example/", webhook_port=9002)
    found = own_address(replace(config, slack=slack, telegram=telegram))
    assert found.ports >= {9001, 9002, config.api.port}


def test_files_that_settings_name_and_the_configurations_directory_are_secret(tmp_path: Path) -> None:
    config = Config()
    config = replace(
        config,
        api=replace(config.api, key_file="/srv/a"),
        model=replace(config.model, api_key_file="/srv/b"),
        telegram=replace(config.telegram, token_file="/srv/c"),
        slack=replace(config.slack, tokens_file="/srv/d"),
    )
    home = Home(data_dir=tmp_path / "data", config_file=tmp_path / "config" / "config.yaml")
    assert set(secret_paths(config, home)) == {"/srv/a", "/srv/b", "/srv/c", "/srv/d", str(tmp_path / "config")}
