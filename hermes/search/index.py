"""Full-text index of all messages, in one SQLite file beside the store.

Rules:
- The file is derived from the journal. If it is missing, damaged or of another version, it is created again with
  position 0, and the follower fills it. It never prevents a start.
- New entries and the new position are one transaction.
- Typed text never reaches SQLite as syntax.
- Calls block. They may come from any thread, one at a time, but never from the event loop.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Final, TypeVar

from loguru import logger

from hermes.domain.errors import StorageError
from hermes.domain.ids import Seq, SessionId
from hermes.domain.values import dataclass, replace
from hermes.ports.search import NO_FILTER, SearchFilter
from hermes.search.fold import fit, fold, spaced
from hermes.search.query import Query, parse
from hermes.search.snippet import snippet
from hermes.search.sqlite import (
    OtherVersionError,
    get_fact,
    has_trigrams,
    is_damage,
    set_fact,
    transaction,
    translated,
)

T = TypeVar("T")

FILE_NAME: Final = "search.sqlite3"
MAX_TEXT_CHARS: Final = 20_000  # of one message; the rest is not searchable
_FORMAT: Final = "2"
_CANDIDATES: Final = 5_000  # the latest matches that are ranked: ranking all matches of a common word takes too long
_PAGE: Final = 200

_SCHEMA: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE entries (
    id INTEGER PRIMARY KEY, session TEXT NOT NULL, root TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL,
    role TEXT NOT NULL, platform TEXT NOT NULL, person TEXT NOT NULL, text TEXT NOT NULL
);
CREATE INDEX by_session ON entries (session, id);
CREATE INDEX by_root ON entries (root, id);
CREATE INDEX by_time ON entries (at, id);
CREATE INDEX by_person ON entries (person, id);
CREATE VIRTUAL TABLE words USING fts5 (text, content='', tokenize='unicode61');
"""
_GRAMS: Final = "CREATE VIRTUAL TABLE grams USING fts5 (text, content='', detail='none', tokenize='trigram');"
COLUMNS: Final = "id, session, root, seq, at, role, platform, person, text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    session: SessionId
    root: SessionId  # the oldest ancestor, which identifies the conversation across compressions
    seq: Seq
    at: float
    role: str
    text: str
    platform: str = ""  # empty: platform and person are those of the last entry of the session
    person: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    session: SessionId
    root: SessionId
    seq: Seq
    at: float
    role: str
    platform: str
    person: str = ""
    snippet: str  # matches stand between snippet.OPEN and snippet.CLOSE
    similarity: float = 0.0  # to the query, of a message that was found by meaning
    score: float  # higher is better; comparable within one result only


class SearchIndex:
    """Search index. Its file is opened on first use."""

    def __init__(self, directory: Path, *, trigrams: bool = True) -> None:
        self.path = directory / FILE_NAME
        self._wants_trigrams = trigrams
        self._trigrams = False
        self._lock = threading.Lock()
        self._database: sqlite3.Connection | None = None
        self._stale = False  # recreated since the last call of `position`

    # ------------------------------------------------------------ filling

    def position(self) -> int:
        """Return the position up to which the journal is indexed."""

        def ask(database: sqlite3.Connection) -> int:
            self._stale = False
            return _position(database)

        return self._run(ask, otherwise=0)

    def add(self, position: int, entries: Iterable[Indexed]) -> None:
        """Index these messages up to that position of the journal. Skips what is already indexed."""

        def write(database: sqlite3.Connection) -> None:
            if self._stale or position <= _position(database):
                return
            with transaction(database):
                self._insert(database, entries)
                set_fact(database, "position", str(position))

        self._run(write, otherwise=None)

    def forget(self, session: SessionId) -> None:
        """Remove the messages of a session from the results. `tidy` removes the last traces from the file."""

        def write(database: sqlite3.Connection) -> None:
            rows = database.execute("SELECT id, text FROM entries WHERE session = ?", (session,)).fetchall()
            if not rows:
                return
            with transaction(database):
                for table, form in self._tables():
                    database.executemany(
                        f"INSERT INTO {table} ({table}, rowid, text) VALUES ('delete', ?, ?)",  # noqa: S608
                        [(number, form(fold(text))) for number, text in rows],
                    )
                database.execute("DELETE FROM entries WHERE session = ?", (session,))
                set_fact(database, "untidy", "yes")

        self._run(write, otherwise=None)

    def tidy(self) -> None:
        """Remove the words of forgotten messages: FTS5 keeps them until all segments of an index are merged.

        Takes seconds for a large index.
        """

        def write(database: sqlite3.Connection) -> None:
            if not get_fact(database, "untidy"):
                return
            for table, _ in self._tables():
                database.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")  # noqa: S608
            set_fact(database, "untidy", "")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

        self._run(write, otherwise=None)

    def clear(self) -> None:
        """Rebuild the index from position 0."""
        with self._lock:
            self._discard()

    def close(self) -> None:
        """Close the file. The next use opens it again."""
        with self._lock:
            self._disconnect()

    # ------------------------------------------------------------ queries

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        only: SearchFilter = NO_FILTER,
    ) -> list[Hit]:
        """Return the best hits: one per conversation, or all in the conversation of one session.

        Of a very common word, only the last few thousand matches are ranked.
        """
        parsed = parse(query)
        if not parsed.groups or limit < 1:
            return []

        def ask(database: sqlite3.Connection) -> list[Hit]:
            found = _Found(limit=limit, only=only)
            for table, expression in self._expressions(parsed):
                if expression and not found.enough():
                    rows = _rows(database, table, expression, only)
                    found.take(rows, parsed, in_doubt=table == "grams")
            return found.hits

        return self._run(ask, otherwise=[])

    def _expressions(self, query: Query) -> Iterator[tuple[str, str]]:
        yield "words", query.for_words()
        if self._trigrams:
            yield "grams", query.for_grams()
        else:
            yield "words", query.for_beginnings()

    def use(self, work: Callable[[sqlite3.Connection], T], *, otherwise: T) -> T:
        """Run work on the database, as all methods do, for what is stored beside the full text."""
        return self._run(work, otherwise=otherwise)

    # ------------------------------------------------------------ the file

    def _run(self, work: Callable[[sqlite3.Connection], T], *, otherwise: T) -> T:
        """Run `work`. If the file is damaged, recreate it and return `otherwise`."""
        with self._lock:
            try:
                return work(self._opened())
            except sqlite3.Error as error:
                if not is_damage(error):
                    raise translated(error, self.path) from error
                logger.warning("search index: damaged, rebuilding it: {}", error)
                self._discard()
                return otherwise

    def _opened(self) -> sqlite3.Connection:
        if self._database is None:
            try:
                self._database = self._connect()
            except sqlite3.Error as error:
                if not is_damage(error):
                    raise
                logger.warning("search index: unusable, rebuilding it: {}", error)
                self._discard()
                self._database = self._connect()
        return self._database

    def _connect(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise StorageError(f"the search index {self.path} cannot be used: {error.strerror}") from error
        database = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(database)
        except BaseException:
            database.close()
            raise
        return database

    def _prepare(self, database: sqlite3.Connection) -> None:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("PRAGMA secure_delete = ON")
        database.execute("PRAGMA cache_size = -16000")
        self._trigrams = self._wants_trigrams and has_trigrams(database)
        # Folding and tokens depend on the Unicode tables.
        version = f"{_FORMAT} unicode-{unicodedata.unidata_version} trigrams-{self._trigrams:d}"
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        if not tables:
            with transaction(database):
                for statement in (_SCHEMA + (_GRAMS if self._trigrams else "")).split(";\n"):
                    database.execute(statement)
                set_fact(database, "version", version)
        elif "meta" not in tables or get_fact(database, "version") != version:
            raise OtherVersionError("it has another version")

    def _discard(self) -> None:
        """Delete the files. A kept copy would hold texts that cannot be erased."""
        self._disconnect()
        self._stale = True
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    def _disconnect(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    # ------------------------------------------------------------ rows

    def _tables(self) -> list[tuple[str, Callable[[str], str]]]:
        words: list[tuple[str, Callable[[str], str]]] = [("words", spaced)]
        return [*words, ("grams", str)] if self._trigrams else words

    def _insert(self, database: sqlite3.Connection, entries: Iterable[Indexed]) -> None:
        [(last,)] = database.execute("SELECT coalesce(max(id), 0) FROM entries")
        sources: dict[SessionId, tuple[str, str]] = {}
        rows = []
        folded = []
        for number, entry in enumerate(entries, last + 1):
            text = fit(entry.text[:MAX_TEXT_CHARS])
            if entry.platform:
                sources[entry.session] = (entry.platform, entry.person)
            elif entry.session not in sources:
                sources[entry.session] = _source(database, entry.session)
            source = sources[entry.session]
            place = (number, entry.session, entry.root, entry.seq, entry.at, entry.role, *source, text)
            rows.append(place)
            folded.append((number, fold(text)))
        database.executemany(f"INSERT INTO entries ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)  # noqa: S608
        for table, form in self._tables():
            database.executemany(
                f"INSERT INTO {table} (rowid, text) VALUES (?, ?)",  # noqa: S608
                ((number, form(text)) for number, text in folded),
            )


class _Found:
    """Collector of hits, best first, up to a limit."""

    def __init__(self, *, limit: int, only: SearchFilter) -> None:
        self.hits: list[Hit] = []
        self._limit = limit
        self._only = only
        self._distinct = only.session is None
        self._seen: set[object] = set()

    def enough(self) -> bool:
        return len(self.hits) >= self._limit

    def take(self, rows: Iterator[tuple[float, _Row]], query: Query, *, in_doubt: bool) -> None:
        tokens = query.tokens()
        for score, row in rows:
            same = row[2] if self._distinct else row[0]
            if same in self._seen:
                continue
            hit = hit_of(row, score=min(score, self.hits[-1].score) if self.hits else score)
            if not self._only.admits(hit) or (in_doubt and not query.occurs_in(fold(row[-1]))):
                continue
            self._seen.add(same)
            self.hits.append(replace(hit, snippet=snippet(row[-1], tokens)))
            if self.enough():
                return


_Row = tuple[int, str, str, int, float, str, str, str, str]


def hit_of(row: _Row, *, score: float) -> Hit:
    """Return a hit without its snippet."""
    _, session, root, seq, at, role, platform, person, _ = row
    return Hit(
        session=SessionId(session),
        root=SessionId(root),
        seq=Seq(seq),
        at=at,
        role=role,
        platform=platform,
        person=person,
        snippet="",
        score=score,
    )


def _rows(
    database: sqlite3.Connection, table: str, expression: str, only: SearchFilter
) -> Iterator[tuple[float, _Row]]:
    """Yield score and row of the matches, best first. Checks only what limits the number of candidates."""
    conditions, values = [f"{table} MATCH ?"], [expression]
    if only.session is not None:
        conditions.append(
            "+rowid IN (SELECT id FROM entries WHERE root IN (SELECT root FROM entries WHERE session = ?))"
        )
        values.append(only.session)
    if only.person or only.platform:  # else the latest matches could all be those of others
        column = "person" if only.person else "platform"
        conditions.append(f"+rowid IN (SELECT id FROM entries WHERE {column} = ?)")  # noqa: S608
        values.append(only.person or only.platform)
    if only.until is not None:
        [(last,)] = database.execute("SELECT coalesce(max(id), -1) FROM entries WHERE at <= ?", (only.until,))
        conditions.append("rowid <= ?")
        values.append(last)
    if only.since is not None:  # later entries have higher numbers, so matches before the first one are too old
        [(first,)] = database.execute("SELECT coalesce(min(id), -1) FROM entries WHERE at >= ?", (only.since,))
        if first < 0:
            return
        conditions.append("rowid >= ?")
        values.append(first)
    sql = (
        f"SELECT rowid, bm25({table}) FROM {table} WHERE {' AND '.join(conditions)} "  # noqa: S608
        f"ORDER BY rowid DESC LIMIT {_CANDIDATES}"
    )
    ranked = sorted(database.execute(sql, values), key=itemgetter(1))
    for first in range(0, len(ranked), _PAGE):
        page = ranked[first : first + _PAGE]
        numbers = ",".join(str(number) for number, _ in page)
        entries = {row[0]: row for row in database.execute(f"SELECT {COLUMNS} FROM entries WHERE id IN ({numbers})")}  # noqa: S608
        for number, rank in page:
            if row := entries.get(number):
                yield -rank, row


def _position(database: sqlite3.Connection) -> int:
    return int(get_fact(database, "position") or 0)


def _source(database: sqlite3.Connection, session: SessionId) -> tuple[str, str]:
    """Return platform and person of the last entry of a session."""
    row = database.execute(
        "SELECT platform, person FROM entries WHERE session = ? ORDER BY id DESC LIMIT 1", (session,)
    ).fetchone()
    return (str(row[0]), str(row[1])) if row else ("", "")
