"""Tables of the store and the format of their keys.

LMDB keys have 1 to 511 bytes. Session ids are part of many keys, so they are bounded and hold no NUL, which ends
them wherever something follows. Session keys and inbound keys come from the outside: a long one is stored by its
hash. The log is keyed by a number that only grows (the LSN): appends of many sessions share a few pages, where a
log keyed by session would touch a page for each of them.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from hermes.domain.errors import StorageError
from hermes.domain.ids import SessionId

if TYPE_CHECKING:
    from hermes.domain.ids import InboundKey, SessionKey

META: Final = "meta"  # what this store is
LOG: Final = "log"  # LSN -> record
SESSIONS: Final = "sessions"  # session -> row
INDEX: Final = "index"  # session, chunk -> the LSNs of its records
KEYS: Final = "keys"  # session key -> session
BOUND: Final = "bound"  # session, session key -> nothing: `keys` the other way round
INBOX: Final = "inbox"  # inbound key -> seen
PENDING: Final = "pending"  # session -> nothing
RECENT: Final = "recent"  # last activity (the latest sorts first), session -> nothing
DUE: Final = "due"  # when somebody must look at it, session -> nothing
DEAD: Final = "dead"  # dead letter
BAD: Final = "bad"  # LSN -> the raw bytes of a record that was set aside
TALLY: Final = "tally"  # day, model, platform -> what was used
FACTS: Final = "facts"  # name -> something small
PROCESSES: Final = "processes"  # background process
OUTBOX: Final = "outbox"  # obligation
SENT: Final = "sent"  # obligation -> how it was met
FIRST: Final = (META, LOG, SESSIONS, INDEX, KEYS, BOUND, INBOX, PENDING, RECENT, DEAD, BAD)  # every store has these
LATER: Final = (TALLY, FACTS, DUE, PROCESSES, OUTBOX, SENT)  # one that an older Hermes wrote may lack them
TABLES: Final = (*FIRST, *LATER)

LONGEST: Final = 200  # bytes of a text inside a key; two of them fit
_LSN = struct.Struct(">Q")
_CHUNK = struct.Struct(">I")
_LATEST: Final = 2**64 - 1

lsn_key = _LSN.pack
NO_LSN: Final = lsn_key(0)  # stands where a record was lost


def lsn_of(key: bytes) -> int:
    lsn: int = _LSN.unpack(key)[0]
    return lsn


def session_key(session: SessionId) -> bytes:
    raw = _encoded(session)
    if 0 < len(raw) <= LONGEST and 0 not in raw:
        return raw
    raise StorageError(f"a session id has 1 to {LONGEST} bytes, none of them NUL; this one has {len(raw)}")


def session_of(key: bytes) -> SessionId:
    """The session in its own key, or in front of a NUL in a longer one."""
    return SessionId(key.partition(b"\0")[0].decode(errors="replace"))  # keys have no checksum


def text_key(text: SessionKey | InboundKey | str) -> bytes:
    raw = _encoded(text)
    return b"=" + raw if len(raw) <= LONGEST else b"#" + blake2b(raw, digest_size=32).digest()


def tally_key(day: str, model: str, platform: str, guest: str = "") -> bytes:
    return text_key("\0".join((day, model, platform, *((guest,) if guest else ()))))


def prefix_of(session: bytes) -> bytes:
    """What all of a session's keys in `index` and `bound` start with."""
    return session + b"\0"


def index_key(session: bytes, chunk: int) -> bytes:
    return prefix_of(session) + _CHUNK.pack(chunk)


def bound_key(session: bytes, key: bytes) -> bytes:
    return prefix_of(session) + key


def recent_key(session: bytes, active_at: float) -> bytes:
    """The latest time sorts first."""
    return _LSN.pack(_LATEST - int(active_at * 1_000_000)) + session


def session_of_recent(key: bytes) -> bytes:
    """Also of a place in `due`."""
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
