"""Screens of the terminal interface as text. Write them again with `python -m tests.tui.test_screens_of_terminal`."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from tests.tui.terminal_screens import SCENES, record

FOLDER = Path(__file__).with_name("screens")
_ACTIVITY = re.compile(r"^ [^\w\s] .* Esc stops", re.MULTILINE)  # its seconds differ
_SECONDS = re.compile(r"(gh issue list  )[\d.]+ s")


def stable(text: str) -> str:
    return _SECONDS.sub(r"\1N s", _ACTIVITY.sub(" (activity)", text)) + "\n"


@pytest.mark.parametrize("name", SCENES)
async def test_screen_is_unchanged(name: str) -> None:
    text, _ = await record(name)
    assert stable(text) == await asyncio.to_thread((FOLDER / f"{name}.txt").read_text, encoding="utf-8")


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in SCENES:
        text, _ = asyncio.run(record(name))
        (FOLDER / f"{name}.txt").write_text(stable(text), encoding="utf-8")


if __name__ == "__main__":
    main()
