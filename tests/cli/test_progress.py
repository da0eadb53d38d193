"""Progress bars: on a terminal only, and never on stdout."""

from __future__ import annotations

import io
import sys

import pytest

from hermes.cli.progress import progress_bar, working


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_nothing_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("backup") as (report, pause), working("verifying"):
        report("store", 1, 2)
        pause()
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_step_and_time(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    for name, value in (("TERM", "xterm"), ("COLUMNS", "120")):
        monkeypatch.setenv(name, value)
    with progress_bar("backup") as (report, _):
        report("store", 1, 2)
    with working("verifying"):
        pass
    shown = terminal.getvalue()
    assert "store" in shown
    assert "50 %" in shown
    assert "verifying" in shown
    assert "0:00:0" in shown
    assert capsys.readouterr().out == ""
