"""History of typed messages across runs."""

from __future__ import annotations

import stat
from pathlib import Path

from hermes.tui.chat import input_history
from hermes.tui.chat.input_history import InputHistory


def test_history_is_kept_across_runs_in_a_private_file(tmp_path: Path) -> None:
    file = tmp_path / "history"
    first = InputHistory(file)
    for text in ("one", "two\nlines"):
        assert first.add(text)
        first.store(text)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    second = InputHistory(file)
    second.load()
    assert second.older("draft") == "two\nlines"
    assert second.older("") == "one"
    assert second.older("") is None
    assert second.newer() == "two\nlines"
    assert second.newer() == "draft"
    assert second.newer() is None


def test_repeated_empty_and_huge_entries_are_not_kept() -> None:
    history = InputHistory()
    assert history.add("a")
    assert not history.add("a")
    assert not history.add("  ")
    assert not history.add("x" * (input_history.MAX_CHARS + 1))


def test_damaged_line_is_skipped_and_a_long_file_is_shortened(tmp_path: Path) -> None:
    file = tmp_path / "history"
    lines = [f'"{number}"' for number in range(3 * input_history.MAX_ENTRIES)]
    file.write_text("\n".join(["{broken", "7", *lines]) + "\n", encoding="utf-8")
    history = InputHistory(file)
    history.load()
    assert history.older("") == str(3 * input_history.MAX_ENTRIES - 1)
    assert len(file.read_text(encoding="utf-8").splitlines()) == input_history.MAX_ENTRIES
