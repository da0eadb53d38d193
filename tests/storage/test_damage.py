"""One flipped byte, anywhere: it is noticed, it costs what it hit and nothing else, and it can be mended."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.domain.change import ChangeAction, damaged_change
from hermes.domain.errors import BadRowError, HermesError, StorageError
from hermes.domain.ids import Epoch, InboundKey, Seq, SessionId, SessionKey
from hermes.domain.operations import Erase, ForgetSeen, PutFact, Restore, SetAside
from hermes.domain.records import BadRecord
from hermes.storage import codec
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.storage.row_keys import (
    BAD,
    CHANGES,
    DEAD,
    FACTS,
    INBOX,
    INDEX,
    KEYS,
    LOG,
    SESSIONS,
    TABLES,
    change_key,
    index_key,
    lsn_key,
    session_key,
    text_key,
)
from hermes.storage.verify import verify
from tests.storage.samples import NOW, append, head, learned, letter, message, seen

A, B = SessionId("a"), SessionId("b")
RECORDS = [message(str(n)) for n in range(40)]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LmdbEngine]:
    made = LmdbEngine.open(tmp_path)
    made.commit([(append("a", 0, *RECORDS, bind="key a", pending=True, seen=seen("id:1"), active_at=NOW + 1),)])
    made.commit([(append("b", 0, *RECORDS, bind="key b"), SetAside(letter=letter("l1")))])
    made.close()
    made = LmdbEngine.open(tmp_path)  # the writer knows no row by heart
    yield made
    made.close()


def write(engine: LmdbEngine, table: str, key: bytes, value: bytes) -> None:
    with engine._env.begin(write=True) as txn:
        txn.put(key, value, db=engine._tables[table])


def read(engine: LmdbEngine, table: str, key: bytes) -> bytes:
    with engine._view() as view:
        value = view.get(table, key)
    assert value is not None
    return value


def damage(engine: LmdbEngine, table: str, key: bytes, position: int = -1) -> None:
    value = bytearray(read(engine, table, key))
    value[position] ^= 0x40
    write(engine, table, key, bytes(value))


def restore(engine: LmdbEngine, session: SessionId) -> HermesError | None:
    entries = engine.salvage(session)
    [outcome] = engine.commit([(Restore(head=head(session, len(entries)), epoch=Epoch(1), pending=True),)])
    return outcome


# ---------------------------------------------------------------- records


def test_a_damaged_record_is_reported_in_its_place_and_hides_no_other(engine: LmdbEngine) -> None:
    damage(engine, LOG, lsn_key(6))
    log = engine.log(A)
    assert isinstance(log[5].record, BadRecord)
    assert [entry.record for entry in log[:5] + log[6:]] == RECORDS[:5] + RECORDS[6:]
    assert [entry.record for entry in engine.log(B)] == RECORDS


def test_a_damaged_record_is_set_aside_with_the_next_commit(engine: LmdbEngine, tmp_path: Path) -> None:
    damage(engine, LOG, lsn_key(6))
    raw = read(engine, LOG, lsn_key(6))
    assert "record 5" in verify(tmp_path)[0]
    engine.log(A)
    assert engine.commit([(append("a", 40),)]) == [None]
    assert engine.stats().bad_records == 1
    assert raw in read(engine, BAD, lsn_key(6))
    assert isinstance(engine.log(A)[5].record, BadRecord)
    assert isinstance(engine.salvage(A)[5].record, BadRecord)
    assert len(engine.log(A)) == 41
    assert verify(tmp_path) == []
    engine.commit([(Erase(session=A),)])
    assert engine.stats().bad_records == 0


def test_a_record_that_was_erased_meanwhile_is_not_set_aside(engine: LmdbEngine, tmp_path: Path) -> None:
    damage(engine, LOG, lsn_key(6))
    engine.log(A)
    engine.commit([(Erase(session=A),)])
    engine.commit([(append("b", 40),)])
    assert verify(tmp_path) == []


@pytest.mark.parametrize("garbled", [b"", b"\x01", b"\x01\x00\x00\x00\x00", b"\x01" + b"\xc1" * 60])
def test_a_garbled_record_is_a_bad_one(engine: LmdbEngine, garbled: bytes) -> None:
    write(engine, LOG, lsn_key(1), garbled)
    assert isinstance(engine.log(A)[0].record, BadRecord)
    assert isinstance(engine.salvage(A)[0].record, BadRecord)


def test_a_record_from_the_future_is_a_bad_one_and_stays_where_it_is(engine: LmdbEngine) -> None:
    value = codec.seal(lsn_key(1), codec.pack(("a", 0, "FromTheFuture", [1, 2])))
    write(engine, LOG, lsn_key(1), value)
    assert isinstance(engine.log(A)[0].record, BadRecord)
    engine.commit([(append("a", 40),)])
    assert read(engine, LOG, lsn_key(1)) == value


def test_a_good_record_in_the_wrong_place_is_a_bad_one(engine: LmdbEngine) -> None:
    write(engine, LOG, lsn_key(2), read(engine, LOG, lsn_key(1)))
    other = codec.seal(lsn_key(3), codec.unseal(lsn_key(1), read(engine, LOG, lsn_key(1))))
    write(engine, LOG, lsn_key(3), other)
    assert [type(entry.record) is BadRecord for entry in engine.log(A, limit=4)] == [False, True, True, False]


# ---------------------------------------------------------------- rows and indexes


def test_a_damaged_row_stops_its_session_and_no_other(engine: LmdbEngine) -> None:
    damage(engine, SESSIONS, session_key(A))
    for ask in (engine.head, engine.log):
        with pytest.raises(BadRowError) as caught:
            ask(A)
        assert caught.value.session == A
    refused, fine = engine.commit([(append("a", 40),), (append("b", 40),)])
    assert isinstance(refused, BadRowError)
    assert fine is None
    assert engine.pending() == [A]
    assert [session.id for session in engine.recent(9)] == [B]


def test_a_damaged_row_is_restored_from_the_log(engine: LmdbEngine, tmp_path: Path) -> None:
    damage(engine, SESSIONS, session_key(A), position=8)
    assert verify(tmp_path) != []
    assert [entry.record for entry in engine.salvage(A)] == RECORDS
    assert restore(engine, A) is None
    assert [entry.record for entry in engine.log(A)] == RECORDS
    assert engine.commit([(append("a", 40),)]) == [None]
    assert verify(tmp_path) == []


def test_a_row_that_the_writer_knows_by_heart_is_mended_by_the_next_append(
    engine: LmdbEngine, tmp_path: Path
) -> None:
    engine.commit([(append("a", 40),)])
    damage(engine, SESSIONS, session_key(A))
    assert engine.commit([(append("a", 41),)]) == [None]
    assert engine.head(A) == head("a", 42)
    assert verify(tmp_path) == []


def test_a_session_is_restored_even_if_one_of_its_records_is_lost(engine: LmdbEngine, tmp_path: Path) -> None:
    damage(engine, SESSIONS, session_key(A))
    damage(engine, LOG, lsn_key(6))
    assert isinstance(engine.salvage(A)[5].record, BadRecord)
    assert restore(engine, A) is None
    log = engine.log(A)
    assert [isinstance(entry.record, BadRecord) for entry in log] == [seq == 5 for seq in range(40)]
    assert engine.commit([(append("a", 40),)]) == [None]
    assert all("may belong to no session" in problem for problem in verify(tmp_path))


def test_a_damaged_index_is_restored_from_the_log(engine: LmdbEngine, tmp_path: Path) -> None:
    damage(engine, INDEX, index_key(session_key(A), 0))
    assert engine.head(A) is not None
    assert [entry.record for entry in engine.log(A, Seq(32))] == RECORDS[32:]
    with pytest.raises(BadRowError):
        engine.log(A)
    assert restore(engine, A) is None
    assert [entry.record for entry in engine.log(A)] == RECORDS
    assert verify(tmp_path) == []


@pytest.mark.parametrize(("table", "key"), [(SESSIONS, b"a"), (INDEX, index_key(b"a", 0))])
def test_a_damaged_session_can_be_erased(engine: LmdbEngine, tmp_path: Path, table: str, key: bytes) -> None:
    damage(engine, table, key)
    assert engine.commit([(Erase(session=A),)]) == [None]
    assert engine.stats().records == 40
    assert engine.bound(SessionKey("key a")) is None
    assert verify(tmp_path) == []


# ---------------------------------------------------------------- the rest


def test_a_key_whose_value_is_damaged_still_means_its_session(engine: LmdbEngine, tmp_path: Path) -> None:
    damage(engine, KEYS, text_key("key a"))
    assert verify(tmp_path) != []
    assert engine.bound(SessionKey("key a")) == A
    engine.commit([(append("b", 40, bind="key a"),)])
    assert engine.bound(SessionKey("key a")) == B
    assert verify(tmp_path) == []


def test_a_damaged_memory_of_an_inbound_id_refuses_that_id_until_it_is_swept(engine: LmdbEngine) -> None:
    damage(engine, INBOX, text_key("id:1"))
    with pytest.raises(StorageError, match="damaged"):
        engine.seen(InboundKey("id:1"))
    [outcome] = engine.commit([(append("b", 40, seen=seen("id:1")),)])
    assert isinstance(outcome, StorageError)
    assert engine.commit([(ForgetSeen(before=1.0, limit=10),)]) == [None]
    assert engine.seen(InboundKey("id:1")) is None


def test_a_damaged_dead_letter_is_left_out(engine: LmdbEngine, tmp_path: Path) -> None:
    engine.commit([(SetAside(letter=letter("l2")),)])
    damage(engine, DEAD, text_key("l1"))
    assert engine.dead_letters() == [letter("l2")]
    assert verify(tmp_path) == ["table dead: a stored DeadLetter is damaged (checksum mismatch)"]


def test_a_damaged_fact_counts_as_not_there_and_hides_no_other(engine: LmdbEngine) -> None:
    engine.commit([(PutFact(name="grant:a", value=b"1"), PutFact(name="grant:b", value=b"2"))])
    damage(engine, FACTS, text_key("grant:a"))
    assert engine.fact("grant:a") is None
    assert engine.facts("grant:") == ["grant:b"]
    assert engine.commit([(PutFact(name="grant:a", value=b"3"),)]) == [None]
    assert engine.fact("grant:a") == b"3"


def test_a_damaged_change_is_reported_in_its_place_and_the_next_is_stored(engine: LmdbEngine) -> None:
    engine.commit([(learned("m", 1), learned("m", 2))])
    damage(engine, CHANGES, change_key(b"m", 2))
    damage(engine, CHANGES, change_key(b"m", 0))
    assert [each.action for each in engine.changes("m")] == [ChangeAction.ADD, ChangeAction.DAMAGED]
    assert engine.last_change("m") == engine.change_of("m", "call-2") == damaged_change("m", 2)
    assert engine.commit([(learned("m", 3),)]) == [None]
    assert [each.number for each in engine.changes("m")] == [1, 2, 3]


@pytest.mark.parametrize("seed", range(5))
def test_no_flipped_byte_anywhere_gives_a_wrong_answer(engine: LmdbEngine, seed: int) -> None:
    dice = random.Random(seed)
    with engine._view() as view:
        values = [(table, key, value) for table in TABLES for key, value in view.scan(table) if value]
    truth = answers(engine)
    for table, key, value in dice.sample(values, 60):
        garbled = bytearray(value)
        garbled[dice.randrange(len(value))] ^= dice.randrange(1, 256)
        write(engine, table, key, bytes(garbled))
        wrong = [
            (table, answer, expected)
            for answer, expected in zip(answers(engine), truth, strict=True)
            if answer != expected and not isinstance(answer, BadRecord | HermesError | type(None))
        ]
        assert wrong == []
        write(engine, table, key, value)
        engine._damaged.clear()
    assert answers(engine) == truth


def answers(engine: LmdbEngine) -> list[object]:
    found: list[object] = []
    for session, key in ((A, "key a"), (B, "key b")):
        try:
            found += [entry.record for entry in engine.log(session)]
        except BadRowError as error:
            found += [error] * 40
        for ask in (lambda s=session: engine.head(s), lambda k=key: engine.bound(SessionKey(k))):
            try:
                found.append(ask())
            except HermesError as error:
                found.append(error)
    try:
        found.append(engine.seen(InboundKey("id:1")))
    except HermesError as error:
        found.append(error)
    return found
