from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hermes.domain.errors import StorageError
from hermes.domain.ids import SessionId
from hermes.domain.operations import Erase
from hermes.storage.copies import compact
from hermes.storage.env import claim, open_env
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.storage.verify import verify
from tests.storage.samples import append, message

A = SessionId("a")


def fill(directory: Path) -> None:
    engine = LmdbEngine.open(directory)
    for n in range(20):
        engine.commit([(append(f"s{n}", 0, message("x" * 100_000)),)])
    engine.commit([(Erase(session=SessionId(f"s{n}")),) for n in range(1, 20)])
    engine.close()


# ---------------------------------------------------------------- backup


def test_a_backup_made_while_writing_holds_a_prefix_and_is_sound(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path / "store")
    acknowledged = 0
    enough, done = threading.Event(), threading.Event()

    def write() -> None:
        nonlocal acknowledged
        while not done.is_set():
            assert engine.commit([(append("a", acknowledged, message(f"number {acknowledged}")),)]) == [None]
            acknowledged += 1
            if acknowledged == 50:
                enough.set()

    writer = threading.Thread(target=write)
    writer.start()
    assert enough.wait(30)
    before = acknowledged
    engine.backup(tmp_path / "copy")
    after = acknowledged
    done.set()
    writer.join(30)
    engine.close()
    assert verify(tmp_path / "copy") == []
    copy = LmdbEngine.open(tmp_path / "copy")
    log = copy.log(A)
    assert before <= len(log) <= after + 1
    assert [entry.record for entry in log] == [message(f"number {n}") for n in range(len(log))]
    copy.close()


def test_a_backup_goes_into_an_empty_directory(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path / "store")
    (tmp_path / "empty").mkdir()
    engine.backup(tmp_path / "empty")
    engine.close()
    assert verify(tmp_path / "empty") == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "store"]


def test_a_backup_overwrites_nothing(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path / "store")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("mine")
    for target in (tmp_path / "full", tmp_path / "full" / "precious", tmp_path / "store"):
        with pytest.raises(StorageError, match="already"):
            engine.backup(target)
    engine.close()
    assert (tmp_path / "full" / "precious").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "store"]


def test_a_backup_that_cannot_be_made_leaves_nothing_and_harms_nothing(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path / "store")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="no backup was made"):
        engine.backup(tmp_path / "file" / "copy")
    assert engine.commit([(append("a", 0),)]) == [None]
    engine.close()


def test_a_backup_makes_no_directories_but_its_own(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path / "store")
    with pytest.raises(StorageError, match=r"the directory .*/no/such does not exist"):
        engine.backup(tmp_path / "no" / "such" / "copy")
    engine.close()
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


# ---------------------------------------------------------------- compaction


def test_compaction_gives_space_back_and_keeps_everything(tmp_path: Path) -> None:
    fill(tmp_path)
    before, after = compact(tmp_path)
    assert after < before / 4
    assert (tmp_path / "data.mdb").stat().st_mode & 0o777 == 0o600
    assert verify(tmp_path) == []
    engine = LmdbEngine.open(tmp_path)
    assert engine.epoch == 2
    assert [entry.record for entry in engine.log(SessionId("s0"))] == [message("x" * 100_000)]
    assert engine.commit([(append("s0", 1, epoch=2),)]) == [None]
    engine.close()
    assert not (tmp_path / "compact.part").exists()


def test_what_an_interrupted_compaction_left_is_cleared_away(tmp_path: Path) -> None:
    fill(tmp_path)
    part = tmp_path / "compact.part"
    part.mkdir()
    (part / "data.mdb").write_bytes(b"half of a copy")
    LmdbEngine.open(tmp_path).close()
    assert not part.exists()
    assert verify(tmp_path) == []


def test_a_store_that_is_damaged_is_not_replaced(tmp_path: Path) -> None:
    fill(tmp_path)
    data = tmp_path / "data.mdb"
    content = data.read_bytes()
    text = content.index(b"x" * 5000)
    data.write_bytes(content[:text] + b"y" + content[text + 1 :])
    damaged = data.read_bytes()
    with pytest.raises(StorageError, match="nothing was changed"):
        compact(tmp_path)
    assert data.read_bytes() == damaged
    assert not (tmp_path / "compact.part").exists()


def test_only_a_store_is_compacted(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        compact(tmp_path / "nothing")


def store_larger_than_its_map(directory: Path) -> None:
    engine = LmdbEngine.open(directory, map_size_bytes=2**20)
    for n in range(24):
        engine.commit([(append(f"s{n}", 0, message("x" * 100_000)),)])
    engine.close()


def test_compacted_store_larger_than_its_map_can_be_opened_and_written(tmp_path: Path) -> None:
    store_larger_than_its_map(tmp_path)
    compact(tmp_path)
    engine = LmdbEngine.open(tmp_path, map_size_bytes=2**20)
    assert engine.stats().map_bytes > (tmp_path / "data.mdb").stat().st_size
    assert engine.commit([(append("later", 0, message("x" * 500_000), epoch=2),)]) == [None]
    engine.close()
    assert verify(tmp_path) == []


def test_backup_of_a_store_larger_than_its_map_can_be_opened_and_written(tmp_path: Path) -> None:
    store_larger_than_its_map(tmp_path / "store")
    engine = LmdbEngine.open(tmp_path / "store")
    engine.backup(tmp_path / "copy")
    engine.close()
    engine = LmdbEngine.open(tmp_path / "copy", map_size_bytes=2**20)
    assert engine.commit([(append("later", 0, epoch=3),)]) == [None]
    engine.close()


def test_claim_grows_a_map_without_room(tmp_path: Path) -> None:
    store_larger_than_its_map(tmp_path)
    compact(tmp_path)
    with open_env(tmp_path, map_size_bytes=2**20) as env:
        full = env.info()["map_size"]
        _, epoch = claim(env, tmp_path)
        assert epoch == 2
        assert env.info()["map_size"] > full
