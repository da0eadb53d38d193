"""Import of exported sessions: decides the whole transaction before anything is written. Pure.

A conversation keeps its ids if all of them are free, else it gets new ones. A conversation that is already stored is
refused. If its key belongs to another session here, it gets a new key. Nothing starts to work by itself: a session
with an open turn is suspended until a person resumes it. Unless the file is trusted, its key, preferences, grants and
prompts are dropped (distrust.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final, get_args

from hermes.domain.cause.cause import SuspendCause
from hermes.domain.errors import BadInputError, BadRowError
from hermes.domain.ids import Epoch, Seq, SessionId, SessionKey
from hermes.domain.operations import Append
from hermes.domain.read.reader import Reader
from hermes.domain.records import AuthorityDropped, BadRecord, LogEntry, Record, SessionStarted, Suspended
from hermes.domain.session.fold.state_fold import evolve, replay
from hermes.domain.session.state import Phase, Session, is_pending
from hermes.domain.values import dataclass, replace
from hermes.upkeep.distrust import IMPORTED, without_system_messages
from hermes.upkeep.portable import Exported, starts_with, type_hints

_ANY: Final = SessionKey("")
_OPEN: Final = "it was imported with open work; resume it to continue"

Ids = dict[SessionId, SessionId]  # id in the export -> id here


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    ids: Ids  # in the order of the export
    appends: tuple[Append, ...]  # one transaction
    suspended: tuple[SessionId, ...] = ()
    new_key: bool = False  # its key belongs to another conversation here
    trusted: bool = False

    @property
    def renamed(self) -> bool:
        return any(old != new for old, new in self.ids.items())

    @property
    def records(self) -> int:
        return sum(len(append.records) for append in self.appends)

    def report(self) -> dict[str, Any]:
        """Return the report of the import as JSON values."""
        return {
            "sessions": list(self.ids.values()),
            "renamed": dict(self.ids) if self.renamed else {},
            "records": self.records,
            "suspended": list(self.suspended),
            "new_key": self.new_key,
            "trusted": self.trusted,
        }


def adopt(
    reader: Reader,
    exported: Exported,
    *,
    epoch: Epoch,
    new_id: Callable[[], SessionId],
    now: float,
    trust: bool = False,
) -> Adoption:
    """Decide the import. Raises BadInputError if all of it is already stored."""
    taken = {session: log for session in exported if (log := _log(reader, session))}
    plain = exported if trust else {name: without_system_messages(log) for name, log in exported.items()}
    if len(taken) == len(exported) and any(_are_in(taken, logs) for logs in (exported, plain)):
        names = ", ".join(exported)
        raise BadInputError(f"already stored with all of these records: {names}. Nothing was imported")
    ids = {session: new_id() if taken else session for session in exported}
    here = [[_renamed(entry, ids) for entry in log] for log in plain.values()]
    key = next((key for log in here if (key := _key_of(log))), None)
    new_key = not trust or key is None or reader.bound(key) is not None
    if new_key:
        fresh = SessionKey(f"agent:main:imported:dm:{next(reversed(ids.values()))}")
        here = [_with_key(log, fresh) for log in here]
    appends, suspended = [], []
    for name, log in zip(ids.values(), here, strict=True):
        append = _append(name, log, epoch, now, trust=trust)
        appends.append(append)
        if isinstance(append.records[-1], Suspended) and append.records[-1].cause is SuspendCause.IMPORTED:
            suspended.append(name)
    return Adoption(ids=ids, appends=_bound(appends), suspended=tuple(suspended), new_key=new_key, trusted=trust)


def _are_in(taken: Exported, logs: Exported) -> bool:
    """Return whether the stored logs start with these, ignoring keys."""
    return all(starts_with(_with_key(taken[name], _ANY), _with_key(log, _ANY)) for name, log in logs.items())


def _log(reader: Reader, session: SessionId) -> list[LogEntry]:
    try:
        return reader.log(session)
    except BadRowError:
        return reader.salvage(session)


def _renamed(entry: LogEntry, ids: Ids) -> LogEntry:
    """Replace the ids of this conversation in a record."""
    record: Any = entry.record
    hints = type_hints(type(record)).items()
    naming = (name for name, hint in hints if SessionId in (hint, *get_args(hint)))
    changes = {name: ids[session] for name in naming if (session := getattr(record, name)) in ids}
    return replace(entry, record=replace(record, **changes)) if changes else entry


def _key_of(log: Sequence[LogEntry]) -> SessionKey | None:
    return log[0].record.key if isinstance(log[0].record, SessionStarted) else None


def _with_key(log: list[LogEntry], key: SessionKey) -> list[LogEntry]:
    first = log[0]
    if not isinstance(first.record, SessionStarted):
        return log
    return [replace(first, record=replace(first.record, key=key)), *log[1:]]


def _append(session: SessionId, log: list[LogEntry], epoch: Epoch, now: float, *, trust: bool) -> Append:
    head = replay(session, log)
    assert head is not None, "an export has no session without records"
    added: list[Record] = [] if trust else [AuthorityDropped(at=now, reason=IMPORTED)]
    if is_pending(head):
        added.append(Suspended(at=now, reason=_OPEN, cause=SuspendCause.IMPORTED))
    records: list[Record | BadRecord] = [*(entry.record for entry in log), *added]
    head = replace(reduce(evolve, added, head), next_seq=Seq(len(records)))
    return Append(
        session=session,
        expected_seq=Seq(0),
        epoch=epoch,
        records=tuple(records),  # type: ignore[arg-type]  # a damaged record is stored as it is
        head=head,
        pending=is_pending(head),
    )


def _bound(appends: list[Append]) -> tuple[Append, ...]:
    """Bind the key to the last session, if it is open."""
    *earlier, last = appends
    return (*earlier, replace(last, bind=last.head.key) if _is_open(last.head) else last)


def _is_open(head: Session) -> bool:
    return head.phase != Phase.ENDED
