"""Vectors of messages, beside the full-text index in the same file. Blocking, like the index.

A vector goes with its message: a trigger deletes it. Vectors of another model are deleted at the first use.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

from hermes.domain.values import replace
from hermes.ports.search import SearchFilter
from hermes.search.fold import fold
from hermes.search.index import COLUMNS, Hit, SearchIndex, hit_of
from hermes.search.query import parse
from hermes.search.snippet import snippet
from hermes.search.sqlite import get_fact, set_fact, transaction

_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS vectors (id INTEGER PRIMARY KEY, vector BLOB NOT NULL)",
    "CREATE TRIGGER IF NOT EXISTS unvector AFTER DELETE ON entries BEGIN DELETE FROM vectors WHERE id = old.id; END",
)
_PAGE: Final = 4096  # vectors compared at a time
_FACT: Final = "vectors"  # name of the model
_OVER: Final = 5  # times as many candidates as hits: several can be of one conversation


class VectorTable:
    def __init__(self, index: SearchIndex, model: str) -> None:
        self._index = index
        self._model = model

    def unembedded(self, limit: int) -> list[tuple[int, str]]:
        """Return number and text of messages without a vector, the newest first."""

        def ask(database: sqlite3.Connection) -> list[tuple[int, str]]:
            self._prepare(database)
            sql = "SELECT id, text FROM entries WHERE id NOT IN (SELECT id FROM vectors) ORDER BY id DESC LIMIT ?"
            return database.execute(sql, (limit,)).fetchall()

        return self._index.use(ask, otherwise=[])

    def add(self, rows: Sequence[tuple[int, str, bytes]]) -> None:
        """Store vectors: number, text and vector of each message. A message that was erased meanwhile gets none."""

        def write(database: sqlite3.Connection) -> None:
            self._prepare(database)
            with transaction(database):
                database.executemany(
                    "INSERT OR REPLACE INTO vectors (id, vector) SELECT id, ? FROM entries WHERE id = ? AND text = ?",
                    [(vector, number, text) for number, text, vector in rows],
                )

        self._index.use(write, otherwise=None)

    def count(self) -> tuple[int, int]:
        """Return the number of vectors, and of messages."""

        def ask(database: sqlite3.Connection) -> tuple[int, int]:
            self._prepare(database)
            [(vectors,)] = database.execute("SELECT count(*) FROM vectors")
            [(entries,)] = database.execute("SELECT count(*) FROM entries")
            return vectors, entries

        return self._index.use(ask, otherwise=(0, 0))

    def nearest(self, query: str, vector: bytes, *, limit: int, least: float, only: SearchFilter) -> list[Hit]:
        """Return the messages closest to a query, at least this similar; one per conversation without a session."""

        def ask(database: sqlite3.Connection) -> list[Hit]:
            self._prepare(database)
            found = _closest(database, vector, only, limit=limit * _OVER, least=least)
            return _hits(database, found, query, limit=limit, only=only)

        return self._index.use(ask, otherwise=[])

    def _prepare(self, database: sqlite3.Connection) -> None:
        if get_fact(database, _FACT) == self._model:
            return
        with transaction(database):
            for statement in _SCHEMA:
                database.execute(statement)
            database.execute("DELETE FROM vectors")
            set_fact(database, _FACT, self._model)


def _closest(
    database: sqlite3.Connection, vector: bytes, only: SearchFilter, *, limit: int, least: float
) -> list[tuple[float, int]]:
    """Return similarity and number of the closest messages, best first."""
    np: Any = import_module("numpy")
    wanted = np.frombuffer(vector, dtype=np.float16).astype(np.float32)
    conditions, values = _conditions(only)
    sql = f"SELECT vectors.id, vector FROM vectors JOIN entries USING (id){conditions}"  # noqa: S608
    best: list[tuple[float, int]] = []
    cursor = database.execute(sql, values)
    while rows := cursor.fetchmany(_PAGE):
        usable = [row for row in rows if len(row[1]) == len(vector)]
        page = np.frombuffer(b"".join(row[1] for row in usable), dtype=np.float16).reshape(-1, len(wanted))
        for row, similarity in zip(usable, (page.astype(np.float32) @ wanted).tolist(), strict=True):
            if similarity >= least:
                best.append((similarity, row[0]))
        best = heapq.nlargest(limit, best)
    return best


def _conditions(only: SearchFilter) -> tuple[str, list[object]]:
    given: list[tuple[str, object]] = [
        ("root IN (SELECT root FROM entries WHERE session = ?)", only.session),
        ("role = ?", only.role),
        ("at >= ?", only.since),
        ("at <= ?", only.until),
        ("platform = ?", only.platform or None),
        ("person = ?", only.person or None),
    ]
    used = [(condition, value) for condition, value in given if value is not None]
    where = " AND ".join(condition for condition, _ in used)
    return (f" WHERE {where}" if used else ""), [value for _, value in used]


def _hits(
    database: sqlite3.Connection, found: Sequence[tuple[float, int]], query: str, *, limit: int, only: SearchFilter
) -> list[Hit]:
    parsed = parse(query)
    hits: list[Hit] = []
    seen: set[object] = set()
    for similarity, number in found:
        row = database.execute(f"SELECT {COLUMNS} FROM entries WHERE id = ?", (number,)).fetchone()  # noqa: S608
        same = row[2] if only.session is None else number
        unwanted = any(term.text in fold(row[-1]) for term in parsed.without)
        if same in seen or unwanted:
            continue
        seen.add(same)
        hit = hit_of(row, score=similarity)
        hits.append(replace(hit, similarity=similarity, snippet=snippet(row[-1], parsed.tokens())))
        if len(hits) == limit:
            break
    return hits
