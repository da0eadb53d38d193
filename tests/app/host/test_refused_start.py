"""Notes about refused starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes.app.host.refused_start import forget_refusal, noting_refusal, refusal_of
from hermes.config.home import Home, prepare
from hermes.config.settings import LogConfig
from hermes.domain.errors import ConfigError


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(data_dir=tmp_path / "home", config_file=tmp_path / "config.yaml")


def refuse(home: Home, log: LogConfig | None = None) -> None:
    with pytest.raises(ConfigError), noting_refusal(home, log):
        raise ConfigError("model.name: is missing (sk-0123456789abcdef)")


@pytest.mark.usefixtures("logs_of_its_own")
def test_refusal_is_logged_and_noted_without_secrets(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    prepare(home)
    refuse(home)
    line = (home.log_dir / "hermes.log").read_text()
    assert "the daemon did not start (exit code 78): model.name: is missing (***)" in line
    assert capsys.readouterr().err == ""  # the command says it
    refusal = refusal_of(home, os.getpid())
    assert refusal is not None
    assert (refusal.exit_code, refusal.problem) == (78, "model.name: is missing (***)")
    assert refusal_of(home, os.getpid() + 1) is None
    forget_refusal(home)
    assert refusal_of(home, os.getpid()) is None


@pytest.mark.usefixtures("logs_of_its_own")
def test_disabled_log_stays_disabled(home: Home) -> None:
    prepare(home)
    refuse(home, LogConfig(file=False))
    assert not (home.log_dir / "hermes.log").exists()
    assert refusal_of(home, os.getpid()) is not None


def test_nothing_is_written_to_a_foreign_directory(home: Home) -> None:
    (home.data_dir / "logs").mkdir(parents=True)
    refuse(home)
    assert list((home.data_dir / "logs").iterdir()) == []


def test_incomplete_note_is_ignored(home: Home) -> None:
    prepare(home)
    (home.log_dir / "refused.json").write_text('{"pid": 1')
    assert refusal_of(home, 1) is None
