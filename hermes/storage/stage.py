"""Staged view of the store for a transaction: stored values and pending changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol

from hermes.storage.row_keys import TABLES

Pair = tuple[bytes, bytes]
Changed = dict[bytes, bytes | None]  # None: delete
NOTHING: Final = b"nothing"  # compared by identity


class TableSource(Protocol):
    def get(self, table: str, key: bytes) -> bytes | None: ...
    def scan(self, table: str, prefix: bytes = b"", start: bytes = b"") -> Iterator[Pair]: ...


Undo = list[tuple[dict[Any, Any], Any, Any]]  # mapping, key, previous value


def roll_back(undo: Undo) -> None:
    while undo:
        changed, key, before = undo.pop()
        if before is NOTHING:
            del changed[key]
        else:
            changed[key] = before


class StagedWrites:
    def __init__(self, source: TableSource, undo: Undo) -> None:
        self.changes: dict[str, Changed] = {table: {} for table in TABLES}
        self._source = source
        self._undo = undo

    def get(self, table: str, key: bytes) -> bytes | None:
        value = self.changes[table].get(key, NOTHING)
        return self._source.get(table, key) if value is NOTHING else value

    def put(self, table: str, key: bytes, value: bytes | None) -> None:
        """Stage a value; None deletes it."""
        changed = self.changes[table]
        self._undo.append((changed, key, changed.get(key, NOTHING)))
        changed[key] = value

    def scan(self, table: str, prefix: bytes = b"", start: bytes = b"") -> Iterator[Pair]:
        """Yield stored pairs in key order, then changed pairs. Ignores changes made during the scan."""
        changed = {
            key: value for key, value in self.changes[table].items() if key.startswith(prefix) and key >= start
        }
        yield from ((key, value) for key, value in self._source.scan(table, prefix, start) if key not in changed)
        yield from ((key, value) for key, value in changed.items() if value is not None)
