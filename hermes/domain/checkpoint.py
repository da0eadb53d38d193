"""Checkpoint of a working directory, and the return to one."""

from __future__ import annotations

from hermes.domain.values import dataclass


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
