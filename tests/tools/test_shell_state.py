from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hermes.tools.terminal.shell_state import (
    FRESH,
    ShellState,
    load,
    nearest_directory,
    open_capture,
    read_capture,
    save,
)

BASE = {"HOME": "/", "LANG": "C"}


def test_a_state_is_read_as_it_was_saved(tmp_path: Path) -> None:
    state = ShellState(cwd="/a b\n", changed={"A": "1\n2", "GONE": None, "RAW": os.fsdecode(b"\xff")})
    save(tmp_path, state)
    assert load(tmp_path) == state
    assert [file.name for file in tmp_path.iterdir()] == ["shell.json"]


def test_without_a_state_the_shell_is_fresh(tmp_path: Path) -> None:
    assert load(tmp_path / "nowhere") == FRESH


@pytest.mark.parametrize(
    "stored",
    [
        "",
        "[]",
        "{}",
        '{"cwd": 1, "env": {}}',
        '{"cwd": "/", "env": []}',
        '{"cwd": "/", "env": {"A": 1}}',
        '{"cwd": "/", "env": {"": "x"}}',
        '{"cwd": "/", "env": {"A=B": "x"}}',
        '{"cwd": "/", "env": {"A": "\\u0000"}}',
    ],
)
def test_a_state_that_cannot_be_used_is_an_error(tmp_path: Path, stored: str) -> None:
    (tmp_path / "shell.json").write_text(stored)
    with pytest.raises(ValueError, match=r"."):
        load(tmp_path)


def test_unchanged_variable_follows_the_daemon() -> None:
    state = ShellState(changed={"LANG": None, "A": "1"})
    assert state.environment({**BASE, "NEW": "2"}) == {"HOME": "/", "A": "1", "NEW": "2"}


@pytest.mark.parametrize(
    ("raw", "state"),
    [
        (b"/usr\n.\0HOME=/\0LANG=C\0_=x\0SHLVL=2\0PWD=/usr\0", ShellState(cwd="/usr", changed={})),
        (
            b"/a\n\n.\0HOME=/x\0A==\0__hermes_kept=1\0",
            ShellState(cwd="/a\n", changed={"HOME": "/x", "A": "=", "LANG": None}),
        ),
        (b"", None),
        (b"/usr\n.\0", None),
        (b"/usr\n.\0HOME=/\0LAN", None),
        (b"/usr\n.\0A=" + b"x" * 2**21 + b"\0", None),
    ],
)
def test_what_a_shell_left_is_a_difference(raw: bytes, state: Any) -> None:
    with open_capture() as capture:
        os.pwrite(capture, raw[: 2**20 + 1], 0)
        assert read_capture(capture, BASE) == state


def test_a_capture_cannot_grow() -> None:
    with open_capture() as capture:
        size = os.fstat(capture).st_size
        with pytest.raises(PermissionError):
            os.pwrite(capture, b"x", size)
        with pytest.raises(PermissionError):
            os.ftruncate(capture, 0)


def test_the_nearest_directory_is_above(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert nearest_directory(tmp_path) == tmp_path
    assert nearest_directory(tmp_path / "a" / "b") == tmp_path
    assert nearest_directory(tmp_path / "file") == tmp_path
