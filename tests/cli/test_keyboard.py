"""Keyboard input on a terminal, and unread input."""

from __future__ import annotations

import os
import pty
import select
import sys
from pathlib import Path

import pytest

from hermes.cli.chat.keyboard import drop_typed, without_keys


def test_unread_input_is_discarded(monkeypatch: pytest.MonkeyPatch) -> None:
    keys, screen = pty.openpty()
    with os.fdopen(screen) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        os.write(keys, b"rm -rf build\nand half of a li")
        assert select.select([stdin], [], [], 5)[0]
        drop_typed()
        assert not select.select([stdin], [], [], 0)[0]
    os.close(keys)


def test_without_a_terminal_there_is_nothing_to_drop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("one\n", encoding="utf-8")
    with (tmp_path / "lines").open(encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        drop_typed()
        assert stdin.read() == "one\n"


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("\x1btyped\x1b[D\x1b[DZ", "typedZ"),
        ("\x1bOA\x1b[1;5Cok\x1b[3~", "ok"),
        ("\x1b[[Aa\x1b[200~pasted\x1b[201~", "apasted"),
        ("\x01\x0c\x7fx\ty", "x\ty"),
        ("cut off \x1b[", "cut off "),
        ("plain [D text, caf\u00e9 \U0001f600", "plain [D text, caf\u00e9 \U0001f600"),
    ],
)
def test_keys_that_are_no_text_are_left_out(typed: str, text: str) -> None:
    assert without_keys(typed) == text
