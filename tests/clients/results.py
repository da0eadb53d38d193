"""Kept cells of earlier runs, so that a run of one client updates its rows only."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.clients.matrix import Cell, Outcome


def merge(file: Path, cells: Iterable[Cell]) -> list[Cell]:
    """Store the cells over those of earlier runs, and return all."""
    kept = {_place(cell): cell for cell in _read(file)}
    kept.update((_place(cell), cell) for cell in cells)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps([as_json(cell) for cell in kept.values()], indent=2), encoding="utf-8")
    return list(kept.values())


def as_json(cell: Cell) -> dict[str, Any]:
    return {**asdict(cell), "outcome": cell.outcome.value}


def _read(file: Path) -> list[Cell]:
    lines = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    return [Cell(**{**line, "outcome": Outcome(line["outcome"])}) for line in lines]


def _place(cell: Cell) -> tuple[str, str, str]:
    return cell.client, cell.mode, cell.scenario
