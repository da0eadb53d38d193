"""The store as a transaction sees it before it is written: what is there, and what would change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from hermes.storage.keys import TABLES

Pair = tuple[bytes, bytes]
Changed = dict[bytes, bytes | None]  # None: the value goes
_UNCHANGED: Final = b"unchanged"  # known by its identity


class Source(Protocol):
    def get(self, table: str, key: bytes) -> bytes | None: ...
    def scan(self, table: str, prefix: bytes = b"", start: bytes = b"") -> Iterator[Pair]: ...


class Stage:
    def __init__(self, source: Source) -> None:
        self.changes: dict[str, Changed] = {table: {} for table in TABLES}
        self._source = source
        self._undo: list[tuple[Changed, bytes, bytes | None]] = []

    def get(self, table: str, key: bytes) -> bytes | None:
        value = self.changes[table].get(key, _UNCHANGED)
        return self._source.get(table, key) if value is _UNCHANGED else value

    def put(self, table: str, key: bytes, value: bytes | None) -> None:
        """None takes the value away."""
        changed = self.changes[table]
        self._undo.append((changed, key, changed.get(key, _UNCHANGED)))
        changed[key] = value

    def scan(self, table: str, prefix: bytes = b"", start: bytes = b"") -> Iterator[Pair]:
        """In key order, but what has changed comes last. What changes from here on is not seen."""
        changed = {
            key: value for key, value in self.changes[table].items() if key.startswith(prefix) and key >= start
        }
        yield from ((key, value) for key, value in self._source.scan(table, prefix, start) if key not in changed)
        yield from ((key, value) for key, value in changed.items() if value is not None)

    def keep(self) -> None:
        self._undo.clear()

    def drop(self) -> None:
        """Take back everything since the last keep."""
        while self._undo:
            changed, key, before = self._undo.pop()
            if before is _UNCHANGED:
                del changed[key]
            else:
                changed[key] = before
