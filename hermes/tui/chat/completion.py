"""Completion of slash commands, files and sessions in the editor. Pure, but for the listing of a directory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hermes.domain.values import dataclass

MAX_SHOWN: Final = 50
_COMMAND: Final = re.compile(r"/[a-z-]+(\s|$)", re.IGNORECASE)
_SESSION_COMMANDS: Final = ("resume", "continue")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Text that replaces what was typed, and what the menu says about it."""

    text: str
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWord:
    """The `@path` before the cursor."""

    start: int  # column of the `@`
    path: str


def is_command(text: str) -> bool:
    """Return whether the text is a slash command, and not a path."""
    return _COMMAND.match(text) is not None


def file_word(line: str) -> FileWord | None:
    """Return the `@path` at the end of the line before the cursor."""
    start = max(line.rfind(" "), line.rfind("\t")) + 1
    word = line[start:]
    return FileWord(start=start, path=word[1:]) if word.startswith("@") else None


def command_candidates(line: str, commands: Sequence[Mapping[str, Any]]) -> list[Candidate]:
    """Return the commands that begin with the typed word, or the values of a typed command's argument."""
    if not line.startswith("/") or "\n" in line:
        return []
    word, space, argument = line[1:].partition(" ")
    if not space:
        return [
            Candidate(text=f"/{name}", about=str(command.get("help") or ""))
            for command in commands
            for name in (command["name"], *command.get("aliases", ()))
            if name.startswith(word.lower()) and (name == command["name"] or len(word) > 1)
        ][:MAX_SHOWN]
    chosen = next((each for each in commands if word.lower() in (each["name"], *each.get("aliases", ()))), None)
    values: Iterable[str] = () if chosen is None else chosen.get("choices", ())
    if word.lower() == "help":
        values = [str(each["name"]) for each in commands]
    return [Candidate(text=f"/{word} {value}") for value in values if value.startswith(argument)][:MAX_SHOWN]


def wants_session(line: str) -> bool:
    """Return whether the line is a command whose argument is a session."""
    word, space, _ = line.removeprefix("/").partition(" ")
    return line.startswith("/") and bool(space) and word.lower() in _SESSION_COMMANDS


def session_candidates(line: str, sessions: Sequence[Mapping[str, Any]]) -> list[Candidate]:
    """Return sessions whose id or title contains the typed words."""
    command, _, typed = line.partition(" ")
    found = [each for each in sessions if matches(each, typed)]
    return [Candidate(text=f"{command} {each['id']}", about=str(each.get("title") or "")) for each in found][
        :MAX_SHOWN
    ]


def matches(session: Mapping[str, Any], typed: str) -> bool:
    text = f"{session['id']} {session.get('title') or ''} {session.get('preview') or ''}".lower()
    return all(word in text for word in typed.lower().split())


def file_candidates(typed: str, directory: Path) -> list[Candidate]:
    """Return the files and directories that continue a typed path. Blocks: it reads a directory.

    Names with control characters are left out: the editor would send them to the terminal.
    """
    parent, _, begun = typed.rpartition("/")
    parent = f"{parent}/" if "/" in typed else ""
    where = directory / Path(parent).expanduser() if parent else directory
    try:
        with os.scandir(where) as entries:
            named = (entry for entry in entries if entry.name.startswith(begun) and entry.name.isprintable())
            found = [(entry.name, _is_directory(entry)) for entry in named]
    except OSError:
        return []
    shown = [(name, folder) for name, folder in found if begun.startswith(".") or not name.startswith(".")]
    shown.sort(key=lambda each: (not each[1], each[0].lower()))
    return [Candidate(text=f"@{parent}{name}{'/' if folder else ''}") for name, folder in shown][:MAX_SHOWN]


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
