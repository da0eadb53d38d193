"""Checkpoint of a working directory, and the return to one."""

from __future__ import annotations

from typing import Final

from hermes.domain.values import dataclass

_CHANGING: Final = frozenset({"write_file", "patch", "execute_code"})
_COMMANDS: Final = frozenset({"terminal"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    commit: str
    at: float
    turn: str
    reason: str
    directory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """What a return to a checkpoint changes, or has changed."""

    checkpoint: Checkpoint
    changed: tuple[str, ...]  # paths
    diff: str  # from the present state to the checkpoint


def takes_checkpoint(tool: str, *, commands: bool) -> bool:
    """Return whether a call of this tool needs a checkpoint. `commands`: those of the terminal do, too."""
    return tool in _CHANGING or (commands and tool in _COMMANDS)
