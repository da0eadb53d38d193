"""Row of a session: a fixed header for the writer, then the session itself.

The positions (LSNs) of a session's records are stored in chunks of 32, each written once to `index`. The row holds
the last, open chunk. So the position of record n is computed, an append rewrites only the row, and a damaged record
does not hide another.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from hermes.domain.errors import BadRowError
from hermes.domain.session.state import Session
from hermes.storage import codec
from hermes.storage.codec import DamagedError, UnreadableError
from hermes.storage.row_keys import INDEX, SESSIONS, due_key, due_of, index_key, session_of

Get = Callable[[str, bytes], bytes | None]

CHUNK: Final = 32
LSN_SIZE: Final = 8
CHUNK_SIZE: Final = CHUNK * LSN_SIZE
_HEADER = struct.Struct(
    ">QQ8sBB"
)  # next sequence number, epoch, start of its key in `recent`, flags, LSNs in the open chunk
_PENDING: Final = 1
_DUE: Final = 2  # the header is followed by the start of its key in `due`
_DUE_SIZE: Final = 8


@dataclass(slots=True)  # not frozen: that costs half a microsecond per append
class Row:
    key: bytes
    next_seq: int
    epoch: int
    place: bytes  # its key in `recent`
    pending: bool
    open_lsns: bytes
    packed: bytes  # the session
    due: bytes = b""  # its key in `due`, if it has one


def due_place(session: bytes, due: float | None) -> bytes:
    return b"" if due is None else due_key(session, due)


def due_time(row: Row) -> float | None:
    return due_of(row.due) if row.due else None


def seal_row(row: Row) -> bytes:
    flags = _PENDING * row.pending + _DUE * bool(row.due)
    header = _HEADER.pack(row.next_seq, row.epoch, row.place, flags, row.next_seq % CHUNK)
    return codec.seal(row.key, header + row.due[:_DUE_SIZE] + row.open_lsns + row.packed)


def read_row(get: Get, session: bytes) -> Row | None:
    try:
        value = get(SESSIONS, session)
        if value is None:
            return None
        payload = codec.unseal(session, value)
        next_seq, epoch, activity, flags, count = _HEADER.unpack_from(payload)
    except (DamagedError, UnreadableError, struct.error) as error:
        raise BadRowError(session_of(session), str(error)) from error
    start = _HEADER.size + _DUE_SIZE * bool(flags & _DUE)
    due = payload[_HEADER.size : start] + session if flags & _DUE else b""
    end = start + count * LSN_SIZE
    pending = bool(flags & _PENDING)
    return Row(session, next_seq, epoch, activity + session, pending, payload[start:end], payload[end:], due)


def read_head(row: Row) -> Session:
    try:
        return codec.build(Session, codec.unpack(row.packed))
    except UnreadableError as error:
        raise BadRowError(session_of(row.key), str(error)) from error


def read_lsns(get: Get, row: Row, first: int, stop: int) -> Iterator[bytes]:
    """Yield the positions of the records of a session from `first` up to, not including, `stop`."""
    for number in range(first // CHUNK, -(-stop // CHUNK)):
        chunk = row.open_lsns if number == row.next_seq // CHUNK else _read_chunk(get, row.key, number)
        start = number * CHUNK
        for offset in range(max(first - start, 0), min(stop - start, CHUNK)):
            yield chunk[offset * LSN_SIZE : (offset + 1) * LSN_SIZE]


def _read_chunk(get: Get, session: bytes, number: int) -> bytes:
    key = index_key(session, number)
    try:
        return codec.unseal(key, get(INDEX, key) or b"")
    except (DamagedError, UnreadableError) as error:
        raise BadRowError(session_of(session), f"chunk {number} of its index: {error}") from error
