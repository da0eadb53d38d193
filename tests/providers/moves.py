"""Moves of an endpoint in a scenario: what it answers, or how it fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    text: str
    thought: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    calls: tuple[tuple[str, Mapping[str, Any]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    status: int
    code: str = ""
    message: str = "no"
    retry_after_s: float = 0.0


class Break(Enum):
    MALFORMED = "malformed"  # a chunk that is not JSON
    CUT = "cut"  # the connection ends in the middle
    EMPTY = "empty"  # an answer without a word


Move: TypeAlias = Say | Call | Fail | Break


class Limit(Exception):  # noqa: N818 - a reason, not a failure of Hermes
    """Says what the implementation cannot do itself."""
