"""SQLite access: transactions, small named facts, and errors that mean damage."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes.domain.errors import StorageError, StorageFullError


class OtherVersionError(sqlite3.DatabaseError):
    """The file is intact, but has another format or version."""


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def get_fact(database: sqlite3.Connection, key: str) -> str:
    row = database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return str(row[0]) if row else ""


def set_fact(database: sqlite3.Connection, key: str, value: str) -> None:
    database.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))


def has_trigrams(database: sqlite3.Connection) -> bool:
    try:
        database.execute("CREATE VIRTUAL TABLE temp.probe USING fts5 (text, tokenize='trigram')")
    except sqlite3.OperationalError:
        return False
    database.execute("DROP TABLE temp.probe")
    return True


def is_damage(error: sqlite3.Error) -> bool:
    if isinstance(error, OtherVersionError):
        return True
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def translated(error: sqlite3.Error, path: Path) -> StorageError:
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
        return StorageFullError(f"no space for the search index {path}; conversations are not affected")
    return StorageError(f"the search index {path} cannot be used: {error}; conversations are not affected")
