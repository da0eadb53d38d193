"""The store as a transaction sees it before it is written: what is there, and what would change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

Pair = tuple[bytes, bytes]
Changes = dict[tuple[str, bytes], bytes | None]  # by table and key; None: the value goes


class Source(Protocol):
    def get(self, table: str, key: bytes) -> bytes | None: ...
    def scan(self, table: str, prefix: bytes = b"", start: bytes = b"") -> Iterator[Pair]: ...


class Stage:
    def __init__(self, source: Source) -> None:
        self.kept: Changes = {}
        self._source = source
        self._fresh: Changes = {}

    def get(self, table: str, key: bytes) -> bytes | None:
        place = (table, key)
        if place in self._fresh:
            return self._fresh[place]
        if place in self.kept:
            return self.kept[place]
        return self._source.get(table, key)

    def put(self, table: str, key: bytes, value: bytes) -> None:
        self._fresh[table, key] = value

    def delete(self, table: str, key: bytes) -> None:
        self._fresh[table, key] = None

    def scan(self, table: str, prefix: bytes = b"", start: bytes = b"") -> Iterator[Pair]:
        """In key order, but what has changed comes last. What changes meanwhile is not seen."""
        changed = {
            key: value
            for (place, key), value in (self.kept | self._fresh).items()
            if place == table and key.startswith(prefix) and key >= start
        }
        yield from ((key, value) for key, value in self._source.scan(table, prefix, start) if key not in changed)
        yield from ((key, value) for key, value in changed.items() if value is not None)

    def keep(self) -> None:
        self.kept |= self._fresh
        self._fresh.clear()

    def drop(self) -> None:
        self._fresh.clear()
