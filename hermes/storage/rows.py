"""Rows that a batch changes, each with its stored and its new value.

The changes in `recent`, `pending` and `due` follow from the difference. Rows written recently are cached, so that an
append does not read. If a cached row gets damaged on disk, the next append repairs it.
"""

from __future__ import annotations

from typing import Final

from hermes.domain.ids import SessionId
from hermes.storage.row import Row, read_row, seal_row
from hermes.storage.row_keys import DUE, PENDING, RECENT, SESSIONS, session_key
from hermes.storage.stage import NOTHING, Changed, TableSource, Undo

Known = dict[SessionId, Row]
Change = tuple[Row | None, Row | None]  # before the batch, after it

_MAX_KNOWN: Final = 4096


class Rows:
    def __init__(self, source: TableSource, undo: Undo, known: Known) -> None:
        self._source = source
        self._undo = undo
        self._known = known
        self._changed: dict[SessionId, Change] = {}

    def read(self, session: SessionId) -> Change:
        """Return the stored and the current row. Raises BadRowError."""
        change = self._changed.get(session)
        if change is None:
            row = self._known.get(session) or read_row(self._source.get, session_key(session))
            change = (row, row)
        return change

    def put(self, session: SessionId, stored: Row | None, row: Row | None) -> None:
        """Change a row; None erases it."""
        self._undo.append((self._changed, session, self._changed.get(session, NOTHING)))
        self._changed[session] = (stored, row)

    def write_to(self, changes: dict[str, Changed]) -> None:
        sessions, recent, pending, due = changes[SESSIONS], changes[RECENT], changes[PENDING], changes[DUE]
        for name, (stored, row) in self._changed.items():
            if stored is not None and (row is None or row.place != stored.place):
                recent[stored.place] = None
            if stored is not None and stored.due and (row is None or row.due != stored.due):
                due[stored.due] = None
            if row is None:
                sessions[session_key(name)] = pending[session_key(name)] = None
                continue
            sessions[row.key] = seal_row(row)
            if stored is None or row.place != stored.place:
                recent[row.place] = b""
            if stored is None or row.pending != stored.pending:
                pending[row.key] = b"" if row.pending else None
            if row.due and (stored is None or row.due != stored.due):
                due[row.due] = b""

    def remember(self) -> None:
        """Cache the changed rows, which are stored now."""
        if len(self._known) > _MAX_KNOWN:
            self._known.clear()
        for session, (_, row) in self._changed.items():
            if row is None:
                self._known.pop(session, None)
            else:
                self._known[session] = row
