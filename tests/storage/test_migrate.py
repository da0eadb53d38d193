"""Stores of older formats are migrated and kept, whatever cuts it off; and today's format stays readable."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
from pathlib import Path

import lmdb
import pytest

from hermes.domain.errors import StorageError, StorageFormatError
from hermes.domain.ids import SessionId
from hermes.storage.env import STORE_FORMAT
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.storage.lmdb_reader import open_reader
from hermes.storage.migrate import kept_copy, migrate
from hermes.storage.verify import verify
from tests.storage.older import STEP, make_older, notes_of
from tests.storage.samples import message

A = SessionId("a")
CHILD = [sys.executable, "-m", "tests.storage.older"]
CHANGES = ("pwrite64", "pwritev", "write", "fsync", "fdatasync", "linkat,link", "rename", "mkdir", "ftruncate")


def contents(directory: Path) -> list[object]:
    engine = LmdbEngine.open(directory)
    try:
        return [engine.fact("greeting"), [entry.record for entry in engine.log(A)]]
    finally:
        engine.close()


MIGRATED = [b"hello", [message("number 0"), message("number 1")]]


# ---------------------------------------------------------------- the mechanism


def test_an_older_store_is_migrated_and_kept_as_it_was(tmp_path: Path) -> None:
    make_older(tmp_path)
    before = (tmp_path / "data.mdb").read_bytes()
    migrate(tmp_path, steps={STORE_FORMAT - 1: STEP})
    assert contents(tmp_path) == MIGRATED
    assert verify(tmp_path) == []
    kept = kept_copy(tmp_path, STORE_FORMAT - 1)
    assert (kept / "data.mdb").read_bytes() == before
    assert (kept / "data.mdb").stat().st_mode & 0o777 == 0o600
    assert kept.stat().st_mode & 0o777 == 0o700


def test_a_store_of_todays_format_is_left_alone(tmp_path: Path) -> None:
    LmdbEngine.open(tmp_path).close()
    before = (tmp_path / "data.mdb").read_bytes()
    migrate(tmp_path, steps={})
    assert (tmp_path / "data.mdb").read_bytes() == before
    assert not list(tmp_path.glob("format-*"))


def test_several_steps_are_taken_in_their_order(tmp_path: Path) -> None:
    make_older(tmp_path, format=STORE_FORMAT - 3)
    taken: list[int] = []
    steps = {STORE_FORMAT - n: (lambda env, n=n: taken.append(n)) for n in (1, 2, 3)}
    migrate(tmp_path, steps=steps)
    assert taken == [3, 2, 1]


def test_without_a_way_from_there_the_store_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    make_older(tmp_path)
    before = (tmp_path / "data.mdb").read_bytes()
    with pytest.raises(StorageFormatError, match="cannot migrate format") as refusal:
        LmdbEngine.open(tmp_path)
    assert refusal.value.exit_code == 78
    assert (tmp_path / "data.mdb").read_bytes() == before
    assert not (tmp_path / "compact.part").exists()


def test_reader_does_not_migrate_but_says_what_to_do(tmp_path: Path) -> None:
    make_older(tmp_path)
    with pytest.raises(StorageFormatError, match="start the daemon once"), open_reader(tmp_path):
        pass
    assert "start the daemon once" in verify(tmp_path)[0]


def test_a_step_that_fails_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    make_older(tmp_path)
    before = (tmp_path / "data.mdb").read_bytes()

    def fails(env: lmdb.Environment) -> None:
        STEP(env)
        raise lmdb.MapFullError("no room")

    with pytest.raises(StorageError, match="not migrated and is unchanged"):
        migrate(tmp_path, steps={STORE_FORMAT - 1: fails})
    assert (tmp_path / "data.mdb").read_bytes() == before
    assert not (tmp_path / "compact.part").exists()


# ---------------------------------------------------------------- kill -9


@pytest.mark.skipif(not shutil.which("strace"), reason="kills at an exact step need strace")
def test_a_kill_at_any_step_leaves_the_old_store_or_the_new_one(tmp_path: Path) -> None:
    make_older(tmp_path / "old")
    found: list[int] = []
    for change in CHANGES:
        point = 1
        while (format_left := format_after_kill(tmp_path, change, point)) is not None:
            found.append(format_left)
            point += 1
    assert len(found) > 8
    assert set(found) == {STORE_FORMAT - 1, STORE_FORMAT}


def format_after_kill(directory: Path, change: str, point: int) -> int | None:
    """Of a store whose migration was killed at that system call; None when it makes fewer of them."""
    store = directory / "store"
    shutil.rmtree(store, ignore_errors=True)
    shutil.copytree(directory / "old", store)
    names = ",".join(f"?{name}" for name in change.split(","))
    kill = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"inject={names}:signal=SIGKILL:when={point}"]
    done = subprocess.run([*kill, *CHILD, str(store)], capture_output=True, timeout=50, check=False)
    if done.returncode == 0:
        return None
    notes = notes_of(store)
    assert notes in {(STORE_FORMAT - 1, b"hello", None), (STORE_FORMAT, None, b"hello")}, (change, point)
    migrate(store, steps={STORE_FORMAT - 1: STEP})
    assert contents(store) == MIGRATED, (change, point)
    assert kept_copy(store, STORE_FORMAT - 1).is_dir()
    assert not (store / "compact.part").exists()
    return notes[0]


# ---------------------------------------------------------------- what was written before


def test_a_store_that_an_earlier_version_wrote_in_this_format_is_read_whole(tmp_path: Path) -> None:
    """`format-1.mdb.gz` is never regenerated: code that cannot read it has changed the format. It has 11 tables."""
    (tmp_path / "data.mdb").write_bytes(gzip.decompress((Path(__file__).parent / "format-1.mdb.gz").read_bytes()))
    assert verify(tmp_path) == []
    with open_reader(tmp_path) as reader:
        assert reader is not None
        assert [entry.record for entry in reader.log(A)] == [message("number 0"), message("number 1")]
        assert reader.processes() == []  # the table came later
    assert contents(tmp_path) == [None, MIGRATED[1]]
    assert verify(tmp_path) == []
