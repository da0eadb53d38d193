"""Fenced blocks of the Markdown documents, with the comments that tell how a test treats them. Pure.

A comment in the line before a block:

    <!-- not run: REASON -->          the block cannot run here; its `hermes` commands are still parsed
    <!-- output varies: REASON -->    the block runs, and its shown output is only an example
    <!-- fails: REASON -->            the last command of the block ends with an error
    <!-- file: NAME -->               the block is written into this file of the working directory
    <!-- input: FILE -->              standard input of the block's commands, from the working directory
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

ROOT = Path(__file__).parents[2]
_MARK = re.compile(r"^<!-- (not run|output varies|fails|file|input): (.+) -->$")
_FENCE = re.compile(r"^( *)```(\w*)\s*$")


class Mark(StrEnum):
    NOT_RUN = "not run"
    OUTPUT_VARIES = "output varies"
    FAILS = "fails"
    FILE = "file"
    INPUT = "input"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    page: str
    line: int
    language: str
    text: str
    marks: dict[Mark, str]

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of a console block, with the output that the page shows for it."""

    text: str
    output: tuple[str, ...]


def documents() -> list[Path]:
    """Return every document whose blocks are checked."""
    found = (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md"))
    return sorted(path for path in found if path.name != "CHANGELOG.md")


def blocks(path: Path) -> Iterator[Block]:
    lines = path.read_text(encoding="utf-8").splitlines()
    marks: dict[Mark, str] = {}
    at = 0
    while at < len(lines):
        if (mark := _MARK.match(lines[at].strip())) is not None:
            marks[Mark(mark[1])] = mark[2]
        elif (fence := _FENCE.match(lines[at])) is not None:
            end = next(number for number in range(at + 1, len(lines)) if lines[number].strip() == "```")
            body = [line.removeprefix(fence[1]) for line in lines[at + 1 : end]]
            name = str(path.relative_to(ROOT))
            yield Block(page=name, line=at + 1, language=fence[2], text="\n".join(body) + "\n", marks=marks)
            marks, at = {}, end
        elif lines[at].strip():
            marks = {}
        at += 1


def commands(block: Block) -> list[Command]:
    """Return the commands of a console block: lines after `$ `, continued after a backslash or inside quotes."""
    found: list[tuple[list[str], list[str]]] = []
    open_command = False
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(([line.removeprefix("$ ")], []))
        elif open_command:
            found[-1][0].append(line)
        elif found:
            found[-1][1].append(line)
        else:
            raise ValueError(f"{block.place}: output before the first command")
        open_command = line.endswith("\\") and not found[-1][1]
    return [Command(text="\n".join(text), output=tuple(output)) for text, output in found]


def shows(shown: tuple[str, ...], real: str) -> bool:
    """Return True if the real output has the shown lines in this order.

    An ellipsis stands for any text, and alone for any lines.
    """
    rest = [line.rstrip() for line in real.splitlines()]
    for line in (each for each in shown if each.strip() != "…"):
        pattern = re.compile(".*".join(map(re.escape, line.rstrip().split("…"))))
        at = next((number for number, each in enumerate(rest) if pattern.fullmatch(each)), None)
        if at is None:
            return False
        rest = rest[at + 1 :]
    return True
