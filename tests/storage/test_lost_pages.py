"""A page of the file that cannot be read: it costs what was on it, and nobody else notices."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.domain.errors import BadRowError, StorageError, StorageFailedError
from hermes.domain.ids import Epoch, Seq, SessionId, SessionKey
from hermes.domain.operations import Erase, Restore, Tally
from hermes.domain.records import BadRecord
from hermes.domain.turn.usage import Usage
from hermes.storage import pages
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.storage.row_keys import (
    INBOX,
    INDEX,
    KEYS,
    LOG,
    RECENT,
    SESSIONS,
    TALLY,
    index_key,
    lsn_of,
    prefix_of,
    session_key,
)
from hermes.storage.verify import verify
from tests.storage.child import long_name
from tests.storage.page_damage import PAGE, leaves, lose, overwrite
from tests.storage.samples import append, head, message, seen

SESSIONS_MADE = 60
RECORDS = [message(f"{n} " + "x" * 150) for n in range(40)]
NAMES = [long_name(n) for n in range(SESSIONS_MADE)]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    engine = LmdbEngine.open(tmp_path)
    for begin in range(0, len(RECORDS), 4):  # so that each session's records are on many pages
        some = RECORDS[begin : begin + 4]
        batch = [(append(name, begin, *some, bind=f"key {name}", seen=seen(f"{name} {begin}")),) for name in NAMES]
        assert engine.commit(batch) == [None] * SESSIONS_MADE
    engine.close()
    return tmp_path


@pytest.fixture
def opened(store: Path) -> Iterator[list[LmdbEngine]]:
    engines: list[LmdbEngine] = []
    yield engines
    for engine in engines:
        engine.close()


@pytest.mark.parametrize("content", [bytes(PAGE), random.Random(1).randbytes(PAGE)], ids=["zeros", "noise"])
def test_records_on_a_lost_page_are_bad_ones_and_the_session_goes_on(
    store: Path, opened: list[LmdbEngine], content: bytes
) -> None:
    number, keys = leaves(store, LOG)[3]
    overwrite(store, number, content)
    opened.append(engine := LmdbEngine.open(store))
    bad = 0
    for name in NAMES:
        log = engine.log(name)
        assert len(log) == len(RECORDS)
        for entry, record in zip(log, RECORDS, strict=True):
            if isinstance(entry.record, BadRecord):
                assert entry.record.problem == "its page cannot be read"
                bad += 1
            else:
                assert entry.record == record
    assert bad == len(keys)
    assert engine.stats().bad_records == bad
    assert engine.commit([(append(NAMES[0], 40),)]) == [None]
    assert len(engine.log(NAMES[0], Seq(0))) == 41
    assert engine.stats().bad_records == bad


def test_whatever_goes_through_the_log_gets_past_a_lost_page(store: Path, opened: list[LmdbEngine]) -> None:
    lost = set(lose(store, LOG, 5))
    opened.append(engine := LmdbEngine.open(store))
    total = SESSIONS_MADE * len(RECORDS)
    places = [place for place, *_ in engine.tail(0, total)]
    assert len(places) == total - len(lost)
    assert not lost.intersection(pages._NUMBER.pack(place) for place in places)
    assert [place for place, *_ in engine.tail(places[100], 50)] == places[101:151]
    salvaged = engine.salvage(NAMES[0])
    assert len(salvaged) == len(RECORDS)
    assert [entry.record for entry in salvaged] == [
        BadRecord(problem="it is lost") if isinstance(entry.record, BadRecord) else entry.record
        for entry in engine.log(NAMES[0])
    ]


def test_a_lost_branch_hides_only_what_is_below_it(store: Path, opened: list[LmdbEngine]) -> None:
    engine = LmdbEngine.open(store)
    with engine._view() as view:
        description = view._txn.get(LOG.encode())
    engine.close()
    assert description is not None
    overwrite(store, pages._NUMBER.unpack_from(description, pages._ROOT_AT)[0])
    with pytest.raises(StorageFailedError, match="restore a backup"):
        opened.append(LmdbEngine.open(store))  # there is no place left to append to


def test_a_lost_row_costs_its_sessions_the_writing_and_nobody_else(store: Path, opened: list[LmdbEngine]) -> None:
    lost = [SessionId(key.decode()) for key in lose(store, SESSIONS)]
    opened.append(engine := LmdbEngine.open(store))
    for name in lost:
        with pytest.raises(BadRowError, match="page cannot be read"):
            engine.head(name)
        assert [entry.record for entry in engine.log(name)] == RECORDS
        assert [entry.seq for entry in engine.log(name, Seq(5), 3)] == [5, 6, 7]
    [other] = [name for name in NAMES if name not in lost][:1]
    restore = Restore(head=head(lost[0], len(RECORDS)), epoch=Epoch(1), pending=True)
    outcomes = engine.commit([(restore,), (append(lost[0], 40),), (append(other, 40),)])
    assert [type(outcome) for outcome in outcomes[1:]] == [BadRowError, type(None)]
    assert isinstance(outcomes[0], StorageError)
    listed = {session.id for session in engine.recent(SESSIONS_MADE)}
    assert listed == set(NAMES) - set(lost)


def test_a_lost_index_page_leaves_the_log_readable(store: Path, opened: list[LmdbEngine]) -> None:
    keys = lose(store, INDEX)
    name = SessionId(keys[0].partition(b"\0")[0].decode())
    opened.append(engine := LmdbEngine.open(store))
    assert [entry.record for entry in engine.log(name)] == RECORDS


def test_lists_leave_out_what_is_on_a_lost_page(store: Path, opened: list[LmdbEngine]) -> None:
    lost = lose(store, RECENT)
    opened.append(engine := LmdbEngine.open(store))
    assert len(engine.recent(SESSIONS_MADE)) == SESSIONS_MADE - len(lost)


def test_a_key_on_a_lost_page_still_means_its_session(store: Path, opened: list[LmdbEngine]) -> None:
    lose(store, KEYS)
    opened.append(engine := LmdbEngine.open(store))
    assert [engine.bound(SessionKey(f"key {name}")) for name in NAMES] == NAMES


def test_an_inbound_id_on_a_lost_page_refuses_that_message_only(store: Path, opened: list[LmdbEngine]) -> None:
    lost = lose(store, INBOX)[0].decode()[1:]
    opened.append(engine := LmdbEngine.open(store))
    refused, fine = engine.commit([(append(NAMES[0], 40, seen=seen(lost)),), (append(NAMES[1], 40),)])
    assert "page cannot be read" in str(refused)
    assert fine is None


def test_what_cannot_be_counted_any_more_does_not_stop_the_turn(store: Path, opened: list[LmdbEngine]) -> None:
    def tally(n: int) -> Tally:
        return Tally(day=f"2026-01-{n:03}", model="m" * 100, platform="api", usage=Usage(prompt_tokens=1), turns=1)

    engine = LmdbEngine.open(store)
    engine.commit([tuple(tally(n) for n in range(100))])
    engine.close()
    lose(store, TALLY)
    opened.append(engine := LmdbEngine.open(store))
    before = len(engine.tallies("2026"))
    assert 0 < before < 100
    assert engine.commit([(append(NAMES[0], 40), *(tally(n) for n in range(100)))]) == [None]
    assert len(engine.tallies("2026")) == before


def test_a_page_that_must_be_written_and_is_lost_ends_the_writing(store: Path, opened: list[LmdbEngine]) -> None:
    lost = lose(store, RECENT)
    opened.append(engine := LmdbEngine.open(store))
    name = SessionId(lost[0][8:].decode())
    with pytest.raises(StorageFailedError, match="restore a backup"):
        engine.commit([(append(name, 40, active_at=5e9),)])


def test_a_session_with_records_on_a_lost_page_can_be_erased(store: Path, opened: list[LmdbEngine]) -> None:
    lose(store, LOG, 3)
    opened.append(engine := LmdbEngine.open(store))
    assert engine.commit([(Erase(session=name),) for name in NAMES]) == [None] * SESSIONS_MADE
    assert engine.recent(5) == []
    assert engine.tail(0, 5) == []


def test_the_verifier_names_the_page_and_the_records(store: Path) -> None:
    keys = lose(store, LOG, 2)
    problems = verify(store)
    assert any("page" in problem and "DB" in problem for problem in problems)
    named = [problem for problem in problems if "its page cannot be read" in problem]
    assert len(named) == len(keys)


@pytest.mark.parametrize("seed", range(3))
def test_noise_on_any_page_never_crashes_a_reader(store: Path, seed: int) -> None:
    """In a process of its own: what goes wrong inside the engine cannot be caught."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.storage.child", "read_noise", str(store), str(seed)],
        capture_output=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]


def test_a_scan_goes_on_from_any_place(store: Path, opened: list[LmdbEngine]) -> None:
    opened.append(engine := LmdbEngine.open(store))
    with engine._view() as view:
        keys = [key for key, _ in view.scan(LOG)]
        assert [lsn_of(key) for key in keys] == list(range(1, len(keys) + 1))
        for position in (0, 1, 700, len(keys) - 1):
            assert [key for key, _ in view.scan(LOG, start=keys[position])] == keys[position:]
        assert list(view.scan(LOG, start=keys[-1] + b"\0")) == []
        assert [key for key, _ in view.scan(INDEX, prefix_of(session_key(NAMES[7])))] == [
            index_key(session_key(NAMES[7]), 0)
        ]
