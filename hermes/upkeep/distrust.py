"""Removal of authority from untrusted conversations and stores.

A record drops preferences (yolo among them), grants and the system prompt of a session. System messages become user
messages. In an untrusted store, permanent grants, paired users and home channels are deleted as well, and sessions
with open work are suspended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from hermes.domain.cause.cause import SuspendCause
from hermes.domain.ids import Seq
from hermes.domain.operations import Append, Cancel, PutFact
from hermes.domain.records import AuthorityDropped, LogEntry, Record, Suspended
from hermes.domain.session.fold.state_fold import evolve
from hermes.domain.session.state import Session, is_pending
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.values import replace
from hermes.ports.storage import Transaction

if TYPE_CHECKING:
    from hermes.storage.lmdb_engine import LmdbEngine

IMPORTED: Final = "it was imported from an untrusted file"
RESTORED: Final = "it was restored from an untrusted backup"
_OPEN: Final = "it had open work in an untrusted backup; resume it to continue"
_KEPT_FACTS: Final = ("response:",)  # prefixes of facts without authority; all others are deleted
_PAGE: Final = 500
_SYSTEM_ROLES: Final = ("system", "developer")


def without_system_messages(log: list[LogEntry]) -> list[LogEntry]:
    return [replace(entry, record=_unprivileged(entry.record)) for entry in log]


def _unprivileged(record: Any) -> Any:
    messages = getattr(record, "messages", None)
    if not isinstance(messages, tuple):
        return record
    changed = tuple(map(_as_user, messages))
    return record if changed == messages else replace(record, messages=changed)


def _as_user(message: EncodedMessage) -> EncodedMessage:
    values = json.loads(message)
    if values.get("role") not in _SYSTEM_ROLES:
        return message
    return EncodedMessage(json.dumps({**values, "role": "user"}, ensure_ascii=False).encode())


def drop_authority(engine: LmdbEngine, now: float) -> None:
    """Remove authority from a store that no daemon uses. Blocks."""
    names = (name for name in engine.facts("") if not name.startswith(_KEPT_FACTS))
    facts = tuple(PutFact(name=name, value=None) for name in names)
    outgoing = tuple(Cancel(id=each.id) for each in engine.outbox())
    transactions: list[Transaction] = [each for each in (facts, outgoing) if each]
    transactions += [(_dropped(head, engine, now),) for head in _heads(engine)]
    for start in range(0, len(transactions), _PAGE):
        for refusal in engine.commit(transactions[start : start + _PAGE]):
            if refusal is not None:
                raise refusal


def _heads(engine: LmdbEngine) -> Iterator[Session]:
    last = None
    while page := engine.recent(_PAGE, last):
        yield from page
        last = page[-1].id


def _dropped(head: Session, engine: LmdbEngine, now: float) -> Append:
    """Return the append for a session. It is made for every session: a damaged head is rebuilt from the log."""
    records: list[Record] = [AuthorityDropped(at=now, reason=RESTORED)]
    if is_pending(head):
        records.append(Suspended(at=now, reason=_OPEN, cause=SuspendCause.IMPORTED))
    after = reduce(evolve, records, head)
    return Append(
        session=head.id,
        expected_seq=head.next_seq,
        epoch=engine.epoch,
        records=tuple(records),
        head=replace(after, next_seq=Seq(head.next_seq + len(records))),
        pending=False,
        due=engine.due_at(head.id),
    )
