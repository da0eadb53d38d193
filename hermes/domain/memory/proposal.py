"""Changes of memory that wait for a person's approval. Pure.

They have a log of their own. Each change of it holds all proposals that are open afterwards: the last one is enough.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hermes.domain.change import Change, ChangeAuthor
from hermes.domain.errors import BadInputError
from hermes.domain.memory.edit import MemoryEdit, read_edit
from hermes.domain.memory.scope import MemoryTarget
from hermes.domain.values import dataclass

MAX_OPEN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryProposal:
    number: int  # of the change that proposed it
    target: MemoryTarget
    edits: tuple[MemoryEdit, ...]
    at: float
    author: ChangeAuthor
    by: str = ""
    session: str = ""
    turn: str = ""

    def plain(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "target": self.target,
            "operations": [edit.plain() for edit in self.edits],
            "at": self.at,
            "author": self.author,
            "by": self.by,
            "session": self.session,
            "turn": self.turn,
        }


def open_after(last: Change | None) -> tuple[MemoryProposal, ...]:
    """Return the proposals that are open after the last change of their log. A damaged log has none."""
    try:
        return tuple(map(_proposal, json.loads(last.payload)["open"])) if last is not None else ()
    except (ValueError, KeyError, TypeError, BadInputError):
        return ()


def payload_with(proposals: Sequence[MemoryProposal]) -> bytes:
    return json.dumps({"open": [each.plain() for each in proposals]}, ensure_ascii=False).encode()


def _proposal(values: dict[str, Any]) -> MemoryProposal:
    return MemoryProposal(
        number=values["number"],
        target=MemoryTarget(values["target"]),
        edits=tuple(map(read_edit, values["operations"])),
        at=values["at"],
        author=ChangeAuthor(values["author"]),
        by=values["by"],
        session=values["session"],
        turn=values["turn"],
    )
