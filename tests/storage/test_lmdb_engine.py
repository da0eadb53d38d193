"""What the store on disk promises beyond the contract of every engine."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import pytest

from hermes.domain.errors import (
    AlreadySeenError,
    HermesError,
    StorageError,
    StorageFailedError,
    StorageFormatError,
    StorageFullError,
)
from hermes.domain.ids import SessionId
from hermes.domain.operations import Erase
from hermes.storage import codec
from hermes.storage.env import require_bundled
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.storage.verify import verify
from tests.storage.samples import append, message, seen

A = SessionId("a")


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def rewrite_meta(directory: Path, change: Callable[[bytes, bytes], bytes]) -> None:
    with lmdb.open(str(directory), max_dbs=32, lib_version=0) as env:
        table = env.open_db(b"meta")
        with env.begin(write=True) as txn:
            for key, value in list(txn.cursor(table)):
                txn.put(key, change(key, value), db=table)


# ---------------------------------------------------------------- opening


@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_files_are_private(tmp_path: Path, umask: Callable[[int], int], mask: int) -> None:
    umask(mask)
    directory = tmp_path / "home" / "store"
    engine = LmdbEngine.open(directory)
    engine.commit([(append("a", 0),)])
    engine.backup(tmp_path / "copy")
    engine.close()
    for place in (directory, tmp_path / "copy"):
        assert mode(place) == 0o700
        assert {mode(file) for file in place.iterdir()} == {0o600}


def test_a_store_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    LmdbEngine.open(tmp_path / "store").close()
    (tmp_path / "store").chmod(0o755)
    (tmp_path / "store" / "data.mdb").chmod(0o644)
    LmdbEngine.open(tmp_path / "store").close()
    assert (mode(tmp_path / "store"), mode(tmp_path / "store" / "data.mdb")) == (0o700, 0o600)


def test_everything_is_there_after_reopening_and_the_epoch_has_grown(tmp_path: Path) -> None:
    first = LmdbEngine.open(tmp_path)
    first.commit([(append("a", 0, *(message(str(n)) for n in range(40)), seen=seen("id:1"), pending=True),)])
    log = first.log(A)
    first.close()
    second = LmdbEngine.open(tmp_path)
    assert (first.epoch, second.epoch) == (1, 2)
    assert second.log(A) == log
    assert second.pending() == [A]
    outcomes = second.commit([(append("b", 0, seen=seen("id:1")),), (append("a", 40, epoch=2),)])
    assert isinstance(outcomes[0], AlreadySeenError)
    assert outcomes[1] is None
    assert len(second.log(A)) == 41
    second.close()


def test_a_second_opening_in_one_process_is_refused(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path)
    with pytest.raises(StorageError, match="already open"):
        LmdbEngine.open(tmp_path)
    assert engine.commit([(append("a", 0),)]) == [None]
    engine.close()


def test_a_newer_store_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    LmdbEngine.open(tmp_path).close()

    def newer(key: bytes, value: bytes) -> bytes:
        product, _, *rest = codec.unpack(codec.unseal(key, value))
        return codec.seal(key, codec.pack([product, 2, *rest, "something new"]))

    rewrite_meta(tmp_path, newer)
    before = (tmp_path / "data.mdb").read_bytes()
    with pytest.raises(StorageFormatError, match="newer"):
        LmdbEngine.open(tmp_path)
    assert (tmp_path / "data.mdb").read_bytes() == before


def test_a_store_with_a_newer_way_of_writing_values_is_refused(tmp_path: Path) -> None:
    LmdbEngine.open(tmp_path).close()
    rewrite_meta(tmp_path, lambda _, value: b"\x09" + value[1:])
    with pytest.raises(StorageFormatError, match="newer"):
        LmdbEngine.open(tmp_path)


def test_one_damaged_byte_in_the_description_of_the_store_costs_nothing(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path)
    engine.commit([(append("a", 0),)])
    engine.close()
    rewrite_meta(tmp_path, lambda key, value: value[:-1] + b"?" if key == b"store" else value)
    assert verify(tmp_path) == ["table meta: checksum mismatch"]
    engine = LmdbEngine.open(tmp_path)
    assert engine.epoch == 2
    engine.close()
    assert verify(tmp_path) == []


@pytest.mark.parametrize("table", [b"meta", b"other", None])
def test_another_programs_store_is_refused_and_left_as_it_is(tmp_path: Path, table: bytes | None) -> None:
    tmp_path.chmod(0o755)
    with lmdb.open(str(tmp_path), max_dbs=4, lib_version=0) as env, env.begin(write=True) as txn:
        txn.put(b"meta", b"value", db=env.open_db(table, txn=txn) if table else None)
    before = (tmp_path / "data.mdb").read_bytes()
    with pytest.raises(StorageFormatError, match="of another program"):
        LmdbEngine.open(tmp_path)
    assert (tmp_path / "data.mdb").read_bytes() == before
    assert mode(tmp_path) == 0o755


def another_programs_store(directory: Path) -> None:
    directory.mkdir()
    with lmdb.open(str(directory), max_dbs=4, lib_version=0) as env, env.begin(write=True) as txn:
        txn.put(b"key", b"value")


def empty_store(directory: Path) -> None:
    directory.mkdir()
    lmdb.open(str(directory), max_dbs=4, lib_version=0).close()


def no_store(directory: Path) -> None:
    directory.mkdir()
    (directory / "data.mdb").write_bytes(bytes(20_000))


@pytest.mark.parametrize("damage", [another_programs_store, empty_store, no_store])
def test_a_store_of_ours_that_is_not_recognised_is_damaged_and_left_as_it_is(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    store = tmp_path / "store"
    damage(store)
    before = (store / "data.mdb").read_bytes()
    with pytest.raises(StorageFailedError, match=r"is damaged.*hermes restore") as caught:
        LmdbEngine.open(store, made_before=True)
    assert caught.value.exit_code == 74
    assert (store / "data.mdb").read_bytes() == before


@pytest.mark.parametrize("content", [b"SQLite format 3\0" * 1000, b"\xff" * 100, os.urandom(20_000)])
def test_a_file_that_is_no_store_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data.mdb").write_bytes(content)
    with pytest.raises(StorageFormatError):
        LmdbEngine.open(tmp_path)
    assert (tmp_path / "data.mdb").read_bytes() == content


def test_truncated_store_is_refused_without_a_crash(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path)
    engine.commit([(append("a", 0, message("x" * 500_000)),)])
    engine.close()
    os.truncate(tmp_path / "data.mdb", 40 * 4096)
    with pytest.raises(StorageFailedError, match="is truncated"):
        LmdbEngine.open(tmp_path)


def test_a_directory_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be used"):
        LmdbEngine.open(tmp_path / "file" / "store")


def test_a_system_build_of_lmdb_is_refused() -> None:
    require_bundled((0, 9, 36, 1))
    with pytest.raises(StorageError):
        require_bundled((0, 9, 31, 0))


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path)
    engine.close()
    with pytest.raises(StorageFailedError):
        engine.head(A)
    with pytest.raises(StorageFailedError):
        engine.commit([(append("a", 0),)])


# ---------------------------------------------------------------- growing


def test_the_map_grows_while_others_read(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path, map_size_bytes=256 * 1024)
    engine.commit([(append("steady", 0, *(message(str(n)) for n in range(100))),)])
    expected = engine.log(SessionId("steady"))
    done = threading.Event()
    problems: list[object] = []

    def read() -> None:
        while not done.is_set():
            try:
                if engine.log(SessionId("steady")) != expected:
                    problems.append("another log")
                engine.recent(10)
                engine.stats()
            except HermesError as error:
                problems.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for n in range(60):
        assert engine.commit([(append(f"s{n}", 0, message("x" * 50_000)),)]) == [None]
    done.set()
    for reader in readers:
        reader.join(30)
    assert problems == []
    assert engine.stats().map_bytes >= 4 * 2**20
    assert len(engine.recent(999)) == 61
    engine.close()
    assert verify(tmp_path) == []


def test_a_batch_much_larger_than_the_map_is_stored(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path, map_size_bytes=256 * 1024)
    assert engine.commit([(append(f"s{n}", 0, message("x" * 500_000)),) for n in range(10)]) == [None] * 10
    assert len(engine.recent(99)) == 10
    engine.close()


def test_a_map_with_little_room_left_grows_before_it_is_full(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path, map_size_bytes=2**20)
    engine.commit([(append("a", 0, message("x" * 850_000)),)])
    assert engine.stats().map_bytes == 2 * 2**20
    engine.close()


def test_a_full_map_that_cannot_grow_refuses_the_batch_and_loses_nothing(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path, map_size_bytes=2**20, grow_timeout_s=0.01)
    engine.commit([(append("a", 0),)])
    with engine._view(), pytest.raises(StorageFullError, match="try again"):
        engine.commit([(append("b", 0, message("x" * 2_000_000)),)])
    assert engine.commit([(append("b", 0, message("x" * 2_000_000)),)]) == [None]
    assert len(engine.recent(9)) == 2
    engine.close()


# ---------------------------------------------------------------- erasing, figures


def test_erased_space_is_used_again(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path)
    sizes = []
    for n in range(12):
        engine.commit([(append(f"s{n}", 0, message("x" * 1_000_000)),)])
        engine.commit([(Erase(session=SessionId(f"s{n}")),)])
        sizes.append(engine.stats().size_bytes)
    assert sizes[-1] == sizes[3]
    assert engine.stats().used_bytes < 200_000
    engine.close()


def test_the_newest_positions_are_not_given_twice_after_an_erasure(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path)
    engine.commit([(append("a", 0),), (append("b", 0),)])
    engine.commit([(Erase(session=SessionId("b")),), (append("c", 0),)])
    engine.close()
    engine = LmdbEngine.open(tmp_path)
    engine.commit([(append("d", 0, epoch=2),)])
    for name in "acd":
        assert len(engine.log(SessionId(name))) == 1
    engine.close()
    assert verify(tmp_path) == []


def test_the_figures_of_the_disk_are_there(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path)
    engine.commit([(append("a", 0),)])
    stats = engine.stats()
    assert (stats.engine, stats.path, stats.readers) == ("lmdb", str(tmp_path), 0)
    assert 0 < stats.used_bytes <= stats.size_bytes < stats.map_bytes
    assert stats.free_disk_bytes > 0
    assert stats.last_commit_s > 0
    engine.close()
