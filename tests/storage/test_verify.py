from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import lmdb
import pytest

from hermes.storage import codec
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.storage.row_keys import (
    BOUND,
    CHANGE_IDS,
    CHANGES,
    DUE,
    INDEX,
    KEYS,
    LATER,
    LOG,
    PENDING,
    RECENT,
    SESSIONS,
    change_key,
    index_key,
    lsn_key,
    operation_key,
    text_key,
)
from hermes.storage.verify import check, verify
from tests.storage.samples import append, learned, message


@pytest.fixture
def store(tmp_path: Path) -> Path:
    engine = LmdbEngine.open(tmp_path)
    for name in "abc":
        engine.commit([(append(name, 0, *(message(str(n)) for n in range(70)), bind=f"key {name}", pending=True),)])
    engine.commit([(learned("memory/a", n), learned("skill/b", n)) for n in (1, 2, 3)])
    engine.close()
    return tmp_path


def change(store: Path, table: str, key: bytes, value: bytes | None) -> None:
    with lmdb.open(str(store), max_dbs=32, lib_version=0) as env:
        db = env.open_db(table.encode())
        with env.begin(write=True) as txn:
            if value is None:
                assert txn.delete(key, db=db)
            else:
                txn.put(key, value, db=db)


def test_a_sound_store_has_no_problems(store: Path) -> None:
    assert check(store) == verify(store) == []


def test_progress_grows_to_the_whole(store: Path) -> None:
    reports: list[tuple[int, int]] = []
    assert verify(store, lambda done, total: reports.append((done, total))) == []
    [total] = {total for _, total in reports}
    assert [done for done, _ in reports] == sorted({done for done, _ in reports})
    assert 0.9 * total < reports[-1][0] <= total
    assert len(reports) <= 101


@pytest.mark.parametrize(
    ("table", "key", "value", "problem"),
    [
        (SESSIONS, b"a", None, "whose index does not list it"),
        (SESSIONS, b"a", b"\x01", "row of session a is damaged"),
        (INDEX, index_key(b"a", 1), None, "chunk 1"),
        (LOG, lsn_key(3), None, "it is lost"),
        (LOG, lsn_key(3), b"\x01 garbled", "record 2 is damaged"),
        (LOG, lsn_key(999), codec.seal(lsn_key(999), codec.pack(("z", 0, "Ended", [1.0, "x"]))), "session z"),
        (KEYS, text_key("key a"), None, "session keys"),
        (KEYS, text_key("key a"), b"\x01", "binding of a session key is damaged"),
        (KEYS, text_key("key a"), codec.seal(text_key("key a"), codec.pack("z")), "bound to session z"),
        (BOUND, b"a\0" + text_key("key a"), None, "bound to session a"),
        (PENDING, b"a", None, "pending"),
        (PENDING, b"z", b"", "session z is pending"),
        (RECENT, b"\0" * 8 + b"z", b"", "recent"),
        (CHANGES, change_key(b"memory/a", 2), None, "memory/a: change 2 is missing"),
        (CHANGES, change_key(b"memory/a", 2), b"\x01 garbled", "memory/a: change 2 is damaged"),
        (CHANGES, change_key(b"memory/a", 0), b"\x01", "memory/a: change 0 is damaged"),
        (CHANGES, change_key(b"memory/a", 3), None, "memory/a: its last change is 2, but 3 is noted"),
        (CHANGE_IDS, operation_key(b"skill/b", "call-1"), None, "skill/b: change 1 is not listed"),
        (CHANGE_IDS, operation_key(b"skill/b", "call-9"), b"", "7 operation ids are listed, but there are 6"),
    ],
)
def test_inconsistent_tables_are_reported(
    store: Path, table: str, key: bytes, value: bytes | None, problem: str
) -> None:
    change(store, table, key, value)
    problems = check(store)
    assert any(problem in each for each in problems), problems


def test_a_store_in_use_can_be_verified(store: Path) -> None:
    engine = LmdbEngine.open(store)
    engine.commit([(append("a", 70, epoch=2),)])
    assert verify(store) == []
    assert engine.commit([(append("a", 71, epoch=2),)]) == [None]
    assert engine.stats().readers == 0
    engine.close()


def test_damaged_pages_are_reported(store: Path) -> None:
    with (store / "data.mdb").open("r+b") as file:
        file.seek(8 * 4096)
        file.write(os.urandom((store / "data.mdb").stat().st_size - 8 * 4096))
    assert verify(store) != []


def test_truncated_store_is_reported(store: Path) -> None:
    os.truncate(store / "data.mdb", 3 * 4096)
    [problem] = verify(store)
    assert "truncated" in problem


def test_foreign_directory_is_reported(tmp_path: Path) -> None:
    assert "cannot be opened" in verify(tmp_path / "nothing")[0]
    (tmp_path / "data.mdb").write_bytes(b"not a store" * 1000)
    assert "does not hold a Hermes store" in verify(tmp_path)[0]


def drop(store: Path, *tables: str) -> None:
    with lmdb.open(str(store), max_dbs=32, lib_version=0) as env:
        for table in tables:
            db = env.open_db(table.encode())
            with env.begin(write=True) as txn:
                txn.drop(db)


def test_a_store_that_an_older_hermes_wrote_is_sound_before_a_daemon_has_opened_it(store: Path) -> None:
    drop(store, *LATER)
    assert check(store) == []
    drop(store, RECENT)
    assert check(store) != []
    LmdbEngine.open(store).close()


def test_the_verifier_survives_stores_with_stale_pages(tmp_path: Path) -> None:
    """In a process of its own: what goes wrong inside the engine cannot be caught."""
    command = [sys.executable, "-m", "tests.storage.stale_pages", str(tmp_path), "30"]
    done = subprocess.run(command, capture_output=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert json.loads(done.stdout) > 20


def test_values_of_another_table_are_damage(store: Path) -> None:
    key = text_key("key a")
    change(store, KEYS, key, codec.seal(key, codec.pack([1, 2])))
    change(store, LOG, b"no position", b"\x01")
    change(store, DUE, b"short", b"")
    problems = check(store)
    assert any("a session key is bound to session (1, 2)" in each for each in problems), problems
    assert any("the log holds a key that is not a position" in each for each in problems), problems
    assert any("holds a key without a session" in each for each in problems), problems


def test_what_fails_in_one_part_is_told_and_the_others_are_checked(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise KeyError("odd")

    change(store, PENDING, b"z", b"")
    monkeypatch.setattr("hermes.storage.verify._row_problems", fails)
    problems = check(store)
    assert "sessions: could not be checked completely (KeyError: 'odd')" in problems
    assert any("session z is pending" in each for each in problems)


def test_package_in_the_current_directory_is_not_imported(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = tmp_path / "elsewhere" / "hermes"
    foreign.mkdir(parents=True)
    (foreign / "__init__.py").write_text("raise SystemExit('foreign code ran')")
    monkeypatch.chdir(foreign.parent)
    assert verify(store) == []
