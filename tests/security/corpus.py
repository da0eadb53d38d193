"""Corpora of command lines for the approval policy and the sandbox: attacks by class, and everyday work."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

import yaml

_FOLDER = Path(__file__).parent
_LINE_END = "⏎"
_PAD = "x" * 70_000  # more than the bounds that were once enough to switch checks off


class Effect(StrEnum):
    """What an attack tries to reach."""

    WRITE_OUTSIDE = "write_outside"
    READ_SECRET = "read_secret"
    EXECUTE_OUTSIDE = "execute_outside"
    PERSIST = "persist"
    KILL_DAEMON = "kill_daemon"
    NETWORK = "network"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The places and the port that stand for the placeholders of a line."""

    home: str
    work: str
    data: str
    canary: str
    secret: str
    port: int

    def fill(self, line: str) -> str:
        values = {
            "home": self.home,
            "work": self.work,
            "data": self.data,
            "canary": self.canary,
            "secret": self.secret,
            "port": str(self.port),
            "pad": _PAD,
        }
        for name, value in values.items():
            line = line.replace(f"{{{name}}}", value)
        return line


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    kind: str  # its class
    line: str  # with placeholders: see `Target.fill`
    effect: Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Everyday:
    group: str
    line: str
    confined: bool  # reads and writes only in the working directory
    asked: str = ""  # why it is asked about although it is everyday work; empty: it is not


@cache
def load() -> tuple[Attack, ...]:
    """Return every attack line."""
    groups = yaml.safe_load((_FOLDER / "attacks.yaml").read_text(encoding="utf-8"))
    return tuple(
        Attack(kind=group["class"], line=line, effect=Effect(group["effect"]))
        for group in groups
        for line in _lines(group["lines"])
    )


@cache
def load_everyday() -> tuple[Everyday, ...]:
    """Return every everyday line."""
    groups = yaml.safe_load((_FOLDER / "everyday.yaml").read_text(encoding="utf-8"))
    return tuple(
        Everyday(group=group["group"], line=line, confined=group["confined"], asked=group.get("asked", ""))
        for group in groups
        for line in _lines(group["lines"])
    )


def _lines(text: str) -> list[str]:
    return [line.replace(_LINE_END, "\n") for line in text.splitlines() if line]
