"""What is typed on a terminal, and what becomes of it when nobody reads it any more."""

from __future__ import annotations

import os
import pty
import select
import sys
from pathlib import Path

import pytest

from hermes.cli.keyboard import drop_typed


def test_what_was_typed_for_us_does_not_go_to_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
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
