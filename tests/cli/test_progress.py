"""Progress bars: on a terminal only, and never on stdout."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.cli.progress import progress_bar, working
from hermes.config.home import Home
from tests.cli.conftest import Hermes
from tests.cli.test_inspect import on_a_terminal


def test_without_a_terminal_nothing_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("backup") as (report, pause), working("verifying"):
        report("store", 1, 2)
        pause()
    assert capsys.readouterr() == ("", "")


def test_a_backup_on_a_terminal_shows_a_bar(home: Home, hermes: Hermes, tmp_path: Path) -> None:
    assert hermes("chat", "-z", "hello").stdout
    shown = on_a_terminal(["backup", str(tmp_path / "copy.tar.gz")], COLUMNS="120")
    assert "\N{BOX DRAWINGS HEAVY HORIZONTAL}" in shown
    assert "0:00:0" in shown
    assert "intact" in on_a_terminal(["storage", "verify"], COLUMNS="120")
