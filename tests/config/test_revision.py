"""Revision of the configuration file."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.config.home import Home
from hermes.config.revision import known_setting, read_text, revise, set_settings, unset_setting, value_of
from hermes.config.settings import SETTINGS
from hermes.domain.errors import ConfigError

TEXT = "# mine\nlog:\n  level: INFO  # loud\n\napi:\n  port: 1\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home.from_environ({"HERMES_HOME": str(tmp_path / "new")})
    found.config_file.parent.mkdir()
    found.config_file.write_text(TEXT)
    return found


def test_a_valid_change_keeps_comments_and_order(home: Home) -> None:
    set_settings(home, {"log.level": "ERROR", "api.host": "::1"}, {})
    assert read_text(home) == '# mine\nlog:\n  level: "ERROR"  # loud\n\napi:\n  host: "::1"\n  port: 1\n'
    assert [each.name for each in home.config_file.parent.iterdir()] == ["config.yaml"]


def test_an_invalid_result_changes_nothing(home: Home) -> None:
    with pytest.raises(ConfigError, match="drain_s"):
        set_settings(home, {"shutdown.drain_s": 3000.0}, {})
    assert read_text(home) == TEXT


def test_a_missing_file_is_created_private(tmp_path: Path) -> None:
    home = Home.from_environ({"HERMES_HOME": str(tmp_path / "deep" / "er")})
    assert set_settings(home, {"api.port": 2}, {}).changed
    assert home.config_file.stat().st_mode & 0o777 == 0o600


def test_mode_and_link_of_the_file_stay(home: Home, tmp_path: Path) -> None:
    target = tmp_path / "target.yaml"
    target.write_text(TEXT)
    target.chmod(0o640)
    home.config_file.unlink()
    home.config_file.symlink_to(target)
    unset_setting(home, "api.port", {})
    assert home.config_file.is_symlink()
    assert target.read_text() == TEXT.replace("  port: 1\n", "")
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_failed_write_leaves_the_old_file(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(_descriptor: int) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr("os.fsync", no_space)
    with pytest.raises(OSError, match="no space"):
        set_settings(home, {"api.port": 2}, {})
    assert read_text(home) == TEXT


def test_an_unchanged_text_is_not_checked_again(home: Home) -> None:
    home.config_file.write_text("api: {port: many}\n")
    assert not revise(home, {}, lambda text: text).changed


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("model.nme", "did you mean model.name?"),
        ("cwd", "did you mean terminal.cwd?"),
        ("model.api_key", "must not contain a key"),
        ("resume.per_second", "no longer a setting"),
        ("zzz", "there is no setting 'zzz'"),
    ],
)
def test_an_unknown_setting_is_refused_with_a_suggestion(name: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        known_setting(name)
    assert said in str(caught.value)


def test_words_of_the_command_line_become_values() -> None:
    assert value_of(SETTINGS["tools.disabled"], ["web", "todo"]) == ("web", "todo")
    assert value_of(SETTINGS["tools.disabled"], ["web, todo"]) == ("web", "todo")
    assert value_of(SETTINGS["tools.disabled"], [""]) == ()
    assert value_of(SETTINGS["log.json"], ["true"]) is True
    assert value_of(SETTINGS["log.level"], ["debug"]) == "DEBUG"
    for words in (["many"], ["1", "2"], ["70000"]):
        with pytest.raises(ConfigError, match="nothing was changed"):
            value_of(SETTINGS["api.port"], words)
