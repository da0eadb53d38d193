"""Choices of a person for the terminal interface, kept in the home. Reading and writing blocks."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Final

from hermes.system.durable_file import replace_file

FILE: Final = "chat_preferences.json"


def read_theme(data_dir: Path) -> str:
    """Return the stored theme; empty if there is none."""
    try:
        found = json.loads((data_dir / FILE).read_bytes())["theme"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return found if isinstance(found, str) else ""


def write_theme(data_dir: Path, theme: str) -> None:
    with suppress(OSError):  # a full disk does not stop the chat
        replace_file(data_dir / FILE, json.dumps({"theme": theme}) + "\n")
