"""Verification of a store: every page, every checksum, and the consistency of the tables.

A separate process does the work. It can read a store in use, because its transaction keeps the pages of one snapshot
from being reused. It does not slow the caller down, and a file that is too damaged to read kills only the verifier.
The problems contain no message text.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final, TypeAlias

import lmdb

from hermes.domain.change import Change
from hermes.domain.errors import BadRowError, ForeignStoreError, HermesError, StorageFormatError
from hermes.domain.job.job import JobRun
from hermes.domain.outbox_message import DeadLetter
from hermes.domain.process.process_record import ProcessRecord
from hermes.domain.records import BadRecord
from hermes.domain.turn.submission import Seen
from hermes.storage import codec
from hermes.storage.codec import DamagedError, UnreadableError
from hermes.storage.env import DATA_FILE, StoreView, open_env, open_tables, page_problems, require_ours, translated
from hermes.storage.pages import DataPages
from hermes.storage.record_log import read_entry
from hermes.storage.row import CHUNK, LSN_SIZE, Row, read_head, read_lsns, read_row
from hermes.storage.row_keys import (
    BAD,
    BOUND,
    CHANGE_IDS,
    CHANGES,
    DEAD,
    DUE,
    INBOX,
    JOB_DUE,
    JOB_RUNS,
    JOBS,
    KEYS,
    LOG,
    META,
    NO_LSN,
    PENDING,
    PROCESSES,
    RECENT,
    SESSIONS,
    bound_key,
    due_key,
    lsn_of,
    recent_key,
    session_of,
    session_of_recent,
)
from hermes.storage.staged_changes import last_number, number_in, number_of
from hermes.storage.staged_jobs import read_job

Progress: TypeAlias = Callable[[int, int], None]  # (rows done, rows in all)
_DONE: Final = "done "  # begins a line of progress of the verifier


def verify(directory: Path, progress: Progress = lambda _done, _total: None) -> list[str]:
    """Return the problems of the store in a directory, which may be in use. Empty if there are none."""
    command = [sys.executable, "-P", "-m", "hermes.storage.verify", str(directory)]
    answer = ""
    with (
        TemporaryFile() as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as verifier,  # noqa: S603 - ours
    ):
        assert verifier.stdout is not None
        for line in verifier.stdout:
            if line.startswith(_DONE):
                done, total = line.removeprefix(_DONE).split()
                progress(int(done), int(total))
            else:
                answer = line
        code = verifier.wait()
        errors.seek(0)
        last = errors.read().decode(errors="replace").strip().rpartition("\n")[2]
    if code:
        how = f"the verifier ended with {code}{f': {last}' if last else ''}"
        return [f"the store cannot be read completely ({how}): restore a backup"]
    problems: list[str] = json.loads(answer)
    return problems


class _Meter:
    """Reports each hundredth of the rows."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._done = self._total = self._next = 0

    def begin(self, total: int) -> None:
        self._total = total

    def row(self) -> None:
        self._done += 1
        if self._done >= self._next and self._done <= self._total:
            self._next = self._done + -(-self._total // 100)
            self._progress(self._done, self._total)


class _MeteredView(StoreView):
    __slots__ = ("meter",)

    def __init__(self, meter: _Meter, *parts: Any) -> None:
        super().__init__(*parts)
        self.meter = meter

    def scan(self, table: str, prefix: bytes = b"", start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        for pair in super().scan(table, prefix, start):
            self.meter.row()
            yield pair


def check(directory: Path, progress: Progress = lambda _done, _total: None) -> list[str]:
    """Return the problems, found in this process, which must not have the store open."""
    problems: list[str] = []
    meter = _Meter(progress)
    try:
        with open_env(directory, map_size_bytes=0, readonly=True) as env:
            if require_ours(env, directory) is None:
                raise StorageFormatError(f"the store in {directory} is empty: no Hermes has opened it yet")
            tables = open_tables(env)
            pages = DataPages(directory / DATA_FILE, env.stat()["psize"])
            with closing(pages), env.begin():  # held to the end, so that no page of this snapshot is reused
                problems += page_problems(directory)
                with suppress(HermesError, lmdb.Error), StoreView(env, tables, pages) as view:
                    meter.begin(sum(map(view.count, _COUNTED)))
                for part, find in _PARTS.items():
                    problems += _found(part, find, partial(_MeteredView, meter, env, tables, pages))
    except ForeignStoreError:
        problems.append(
            f"{directory} does not hold a Hermes store that can be read: "
            "its root pages are lost, or another program wrote it; restore a backup"
        )
    except lmdb.Error as error:
        problems.append(str(translated(error)))
    except HermesError as error:
        problems.append(str(error))
    return problems


def _found(
    part: str, find: Callable[[_MeteredView], Iterator[str]], open_view: Callable[[], _MeteredView]
) -> list[str]:
    """Return the problems of one part. Each part has its own view, because an LMDB error can make a view unusable."""
    problems: list[str] = []
    try:
        with open_view() as view:
            problems.extend(find(view))
    except (HermesError, lmdb.Error) as error:
        problems.append(f"{part}: {error}")
    # A misplaced page can hold any values with valid checksums: any failure on them is damage.
    except Exception as error:  # noqa: BLE001
        problems.append(f"{part}: could not be checked completely ({type(error).__name__}: {error})")
    return problems


def _session_problems(view: _MeteredView) -> Iterator[str]:
    records = 0
    for session, _ in view.scan(SESSIONS):
        try:
            row = read_row(view.get, session)
            if row is None:
                yield f"session {session_of(session)}: its row is listed but cannot be found by its id"
                continue
            lsns = list(read_lsns(view.get, row, 0, row.next_seq))
            yield from _row_problems(view, row, lsns)
        except BadRowError as error:
            yield str(error)
            continue
        records += len(lsns) - lsns.count(NO_LSN)
        for seq, lsn in enumerate(lsns):
            view.meter.row()
            yield from _record_problems(view, session, seq, lsn)
    if view.count(LOG) != records:
        yield from _orphans(view)
    if view.count(RECENT) != view.count(SESSIONS):
        yield f"{view.count(RECENT)} entries in the list of recent sessions, but {view.count(SESSIONS)} sessions"


def _row_problems(view: StoreView, row: Row, lsns: list[bytes]) -> Iterator[str]:
    name = session_of(row.key)
    head = read_head(row)
    if (head.id, head.next_seq, recent_key(row.key, head.active_at)) != (name, row.next_seq, row.place):
        yield f"session {name}: its row is inconsistent"
    known = [lsn for lsn in lsns if lsn != NO_LSN]
    if len(row.open_lsns) != row.next_seq % CHUNK * LSN_SIZE or known != sorted(set(known)):
        yield f"session {name}: the positions of its records are out of order"
    if view.get(RECENT, row.place) is None:
        yield f"session {name}: not in the list of recent sessions"
    if row.pending != (view.get(PENDING, row.key) is not None):
        yield f"session {name}: its row and the list of pending sessions disagree"
    if row.due and view.get(DUE, row.due) is None:
        yield f"session {name}: not in the list of due sessions"


def _record_problems(view: StoreView, session: bytes, seq: int, lsn: bytes) -> Iterator[str]:
    if lsn == NO_LSN:
        return
    name = session_of(session)
    try:
        entry = read_entry(name, seq, lsn, view.get(LOG, lsn))
    except DamagedError as error:
        yield f"session {name}: record {seq} is damaged ({error})"
        return
    if isinstance(entry.record, BadRecord) and view.get(BAD, lsn) is None:
        yield f"session {name}: record {seq} cannot be used ({entry.record.problem})"


def _orphans(view: StoreView) -> Iterator[str]:
    for lsn, value in view.scan(LOG):
        if len(lsn) != LSN_SIZE:
            yield f"the log holds a key that is not a position: {lsn[:40].hex()}"
            continue
        try:
            name, seq, _ = codec.open_record(codec.unseal(lsn, value))
            session = name.encode()
            row = read_row(view.get, session)
            if row is None or [lsn] != list(read_lsns(view.get, row, seq, seq + 1)):
                yield f"position {lsn_of(lsn)} holds record {seq} of session {name}, whose index does not list it"
        except (DamagedError, UnreadableError, BadRowError) as error:
            yield f"the record at {lsn_of(lsn)} may belong to no session ({error})"


def _binding_problems(view: StoreView) -> Iterator[str]:
    for key, value in view.scan(KEYS):
        try:
            session = str(codec.unpack(codec.unseal(key, value))).encode()
        except (DamagedError, UnreadableError) as error:
            yield f"the binding of a session key is damaged ({error})"
            continue
        if view.get(SESSIONS, session) is None or view.get(BOUND, bound_key(session, key)) is None:
            yield f"a session key is bound to session {session_of(session)}, which does not list it"
    if view.count(KEYS) != view.count(BOUND):
        yield f"{view.count(KEYS)} session keys are bound, but sessions list {view.count(BOUND)}"


def _value_problems(view: StoreView) -> Iterator[str]:
    for session, _ in view.scan(PENDING):
        if view.get(SESSIONS, session) is None:
            yield f"session {session_of(session)} is pending but does not exist"
    for place, _ in view.scan(DUE):
        yield from _due_problems(view, place)
    for table, kind in ((INBOX, Seen), (DEAD, DeadLetter), (PROCESSES, ProcessRecord), (BAD, None), (META, None)):
        for key, value in view.scan(table):
            try:
                codec.open_as(kind, key, value) if kind else codec.unseal(key, value)
            except (DamagedError, UnreadableError) as error:
                yield f"table {table}: {error}"


def _due_problems(view: StoreView, place: bytes) -> Iterator[str]:
    session = session_of_recent(place)
    if not session:
        yield f"the list of due sessions holds a key without a session: {place.hex()}"
        return
    with suppress(BadRowError):  # reported by the check of the rows
        row = read_row(view.get, session)
        if row is None or row.due != place:
            yield f"session {session_of(session)} is listed with a due time that is not its own"


def _change_problems(view: StoreView) -> Iterator[str]:
    last: dict[bytes, int] = {}
    changes = 0
    for place, value in view.scan(CHANGES):
        subject, _, _ = place.partition(b"\0")
        number, name = number_in(place), subject.decode(errors="replace")
        expected = last.get(subject, -1) + 1
        last[subject] = number
        try:
            if number == 0:
                lsn_of(codec.unseal(place, value))
                continue
            changes += 1
            if number != expected:
                yield f"{name}: change {expected} is missing"
            change = codec.open_as(Change, place, value)
            if number_of(view, name, change.operation) != number:
                yield f"{name}: change {number} is not listed under its operation id"
        except (DamagedError, UnreadableError) as error:
            yield f"{name}: change {number} is damaged ({error})"
    for subject, number in last.items():
        name = subject.decode(errors="replace")
        if last_number(view, name) != number:
            yield f"{name}: its last change is {number}, but {last_number(view, name)} is noted"
    if view.count(CHANGE_IDS) != changes:
        yield f"{view.count(CHANGE_IDS)} operation ids are listed, but there are {changes} changes"


def _job_problems(view: StoreView) -> Iterator[str]:
    listed = 0
    for key, value in view.scan(JOBS):
        try:
            due, job = read_job(key, value)
        except (DamagedError, UnreadableError) as error:
            yield f"the job {key.decode(errors='replace')} is damaged ({error})"
            continue
        listed += due is not None
        if due is not None and view.get(JOB_DUE, due_key(key, due)) is None:
            yield f"job {job.id}: not in the list of due jobs"
    if view.count(JOB_DUE) != listed:
        yield f"{view.count(JOB_DUE)} jobs are listed as due, but {listed} have a due time"
    for place, value in view.scan(JOB_RUNS):
        try:
            codec.open_as(JobRun, place, value)
        except (DamagedError, UnreadableError) as error:
            yield f"a run of a job: {error}"


# rows of a check
_COUNTED: Final = (SESSIONS, LOG, KEYS, PENDING, DUE, INBOX, DEAD, PROCESSES, BAD, META, CHANGES, JOBS, JOB_RUNS)
_PARTS: Final[Mapping[str, Callable[[_MeteredView], Iterator[str]]]] = {
    "sessions": _session_problems,
    "session keys": _binding_problems,
    "other tables": _value_problems,
    "changes": _change_problems,
    "scheduled jobs": _job_problems,
}


def _report(done: int, total: int) -> None:
    sys.stdout.write(f"{_DONE}{done} {total}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    found = check(Path(sys.argv[1]), _report)
    sys.stdout.write(json.dumps(found))
