"""Tables of the store and the format of their keys.

LMDB keys have 1 to 511 bytes. Session ids are part of many keys, so their length is limited. They hold no NUL, which
separates them from what follows. Session keys and inbound keys come from outside: a long one is stored as its hash.
The log is keyed by an increasing number (the LSN), so appends of many sessions share a few pages. A log keyed by
session would touch a page for each session.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from hermes.domain.errors import StorageError
from hermes.domain.ids import SessionId

if TYPE_CHECKING:
    from hermes.domain.ids import InboundKey, SessionKey

META: Final = "meta"  # description of the store
LOG: Final = "log"  # LSN -> record
SESSIONS: Final = "sessions"  # session -> row
INDEX: Final = "index"  # session, chunk -> the LSNs of its records
KEYS: Final = "keys"  # session key -> session
BOUND: Final = "bound"  # session, session key -> nothing: `keys` the other way round
INBOX: Final = "inbox"  # inbound key -> seen
PENDING: Final = "pending"  # session -> nothing
RECENT: Final = "recent"  # last activity (the latest sorts first), session -> nothing
DUE: Final = "due"  # due time, session -> nothing
DEAD: Final = "dead"  # dead letter
BAD: Final = "bad"  # LSN -> raw bytes of a damaged record
TALLY: Final = "tally"  # day, model, platform -> usage
FACTS: Final = "facts"  # name -> small value
PROCESSES: Final = "processes"  # background process
OUTBOX: Final = "outbox"  # outbox message
SENT: Final = "sent"  # outbox message -> delivered message
CHANGES: Final = "changes"  # subject, number -> change of something learned; number 0 -> the last number
CHANGE_IDS: Final = "change_ids"  # subject, operation id -> number
JOBS: Final = "jobs"  # job -> its due time and itself
JOB_DUE: Final = "job_due"  # due time, job -> nothing
JOB_RUNS: Final = "job_runs"  # job, number -> run
FIRST: Final = (META, LOG, SESSIONS, INDEX, KEYS, BOUND, INBOX, PENDING, RECENT, DEAD, BAD)  # every store has these
# A store of an older Hermes may lack these.
LATER: Final = (TALLY, FACTS, DUE, PROCESSES, OUTBOX, SENT, CHANGES, CHANGE_IDS, JOBS, JOB_DUE, JOB_RUNS)
TABLES: Final = (*FIRST, *LATER)

MAX_TEXT_BYTES: Final = 200  # bytes of a text inside a key; two of them fit
_LSN = struct.Struct(">Q")
_CHUNK = struct.Struct(">I")
_LATEST: Final = 2**64 - 1

lsn_key = _LSN.pack
NO_LSN: Final = lsn_key(0)  # in place of a lost record


def lsn_of(key: bytes) -> int:
    lsn: int = _LSN.unpack(key)[0]
    return lsn


def session_key(session: SessionId) -> bytes:
    raw = _encoded(session)
    if 0 < len(raw) <= MAX_TEXT_BYTES and 0 not in raw:
        return raw
    raise StorageError(f"a session id has 1 to {MAX_TEXT_BYTES} bytes, none of them NUL; this one has {len(raw)}")


def session_of(key: bytes) -> SessionId:
    """Return the session id in a key: the whole key, or the part before a NUL."""
    return SessionId(key.partition(b"\0")[0].decode(errors="replace"))  # keys have no checksum


def text_key(text: SessionKey | InboundKey | str) -> bytes:
    raw = _encoded(text)
    return b"=" + raw if len(raw) <= MAX_TEXT_BYTES else b"#" + blake2b(raw, digest_size=32).digest()


def tally_key(day: str, model: str, platform: str, guest: str = "") -> bytes:
    return text_key("\0".join((day, model, platform, *((guest,) if guest else ()))))


def prefix_of(session: bytes) -> bytes:
    """Return the common prefix of the keys of a session or a subject in the tables that list several for each."""
    return session + b"\0"


def index_key(session: bytes, chunk: int) -> bytes:
    return prefix_of(session) + _CHUNK.pack(chunk)


def bound_key(session: bytes, key: bytes) -> bytes:
    return prefix_of(session) + key


def subject_key(subject: str) -> bytes:
    raw = _encoded(subject)
    if 0 < len(raw) <= MAX_TEXT_BYTES and 0 not in raw:
        return raw
    raise StorageError(f"a subject has 1 to {MAX_TEXT_BYTES} bytes, none of them NUL; this one has {len(raw)}")


def change_key(subject: bytes, number: int) -> bytes:
    return prefix_of(subject) + lsn_key(number)


def operation_key(subject: bytes, operation: str) -> bytes:
    return prefix_of(subject) + text_key(operation)


def recent_key(session: bytes, active_at: float) -> bytes:
    """Return the key in `recent`; the latest time sorts first."""
    return _LSN.pack(_LATEST - int(active_at * 1_000_000)) + session


def session_of_recent(key: bytes) -> bytes:
    """Return the session key in a key of `recent` or `due`."""
    return key[_LSN.size :]


def due_key(session: bytes, due: float) -> bytes:
    return _LSN.pack(round(due * 1_000_000)) + session


def due_of(key: bytes) -> float:
    return lsn_of(key[: _LSN.size]) / 1_000_000


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise StorageError("an id or key is not valid text: it holds half of a surrogate pair") from None
