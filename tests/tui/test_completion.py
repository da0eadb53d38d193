"""Completion of commands, files and sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.tui.chat.completion import (
    command_candidates,
    file_candidates,
    file_word,
    is_command,
    session_candidates,
    wants_session,
)

COMMANDS: list[dict[str, Any]] = [
    {"name": "resume", "aliases": ["continue"], "help": "Continue an earlier conversation", "choices": []},
    {"name": "busy", "aliases": [], "help": "Choose", "choices": ["queue", "steer"]},
    {"name": "help", "aliases": [], "help": "List", "choices": []},
]


def shown(line: str) -> list[str]:
    return [each.text for each in command_candidates(line, COMMANDS)]


def test_commands_and_their_values_are_completed() -> None:
    assert shown("/") == ["/resume", "/busy", "/help"]
    assert shown("/con") == ["/continue"]
    assert shown("/busy s") == ["/busy steer"]
    assert shown("/help b") == ["/help busy"]
    assert shown("no command") == []


def test_sessions_are_completed_by_id_and_title() -> None:
    sessions = [{"id": "2026_a", "title": "Garden plan"}, {"id": "2025_b", "title": ""}]
    assert wants_session("/resume ")
    assert not wants_session("/resume")
    assert [each.text for each in session_candidates("/resume garden", sessions)] == ["/resume 2026_a"]
    assert [each.text for each in session_candidates("/resume 2025", sessions)] == ["/resume 2025_b"]


def test_files_are_completed_directories_first_and_hidden_ones_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").touch()
    (tmp_path / "set.py").touch()
    (tmp_path / ".secret").touch()
    assert [each.text for each in file_candidates("s", tmp_path)] == ["@src/", "@set.py"]
    assert [each.text for each in file_candidates("src/", tmp_path)] == ["@src/main.py"]
    assert [each.text for each in file_candidates(".s", tmp_path)] == ["@.secret"]
    assert file_candidates("gone/x", tmp_path) == []


def test_file_names_with_control_characters_are_not_completed(tmp_path: Path) -> None:
    (tmp_path / "a\x1b]0;owned\x07").touch()
    (tmp_path / "a.txt").touch()
    assert [each.text for each in file_candidates("a", tmp_path)] == ["@a.txt"]


@pytest.mark.parametrize(("line", "path"), [("look at @a/b", "a/b"), ("@", ""), ("mail a@b.c", None), ("", None)])
def test_file_word_is_the_last_one_that_begins_with_an_at_sign(line: str, path: str | None) -> None:
    word = file_word(line)
    assert (None if word is None else word.path) == path


def test_path_is_no_command() -> None:
    assert is_command("/undo 2")
    assert not is_command("/etc/passwd is gone")
