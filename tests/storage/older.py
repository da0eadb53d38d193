"""A store of an invented older format, in which the table `facts` was called `notes`, and the step from there."""

from __future__ import annotations

import sys
from pathlib import Path

import lmdb

from hermes.domain.operations import PutFact
from hermes.storage import codec
from hermes.storage.env import STORE_FORMAT, open_env, write_format
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.storage.migrate import migrate
from hermes.storage.row_keys import FACTS, text_key
from tests.storage.samples import append, message

OLD, NEW = b"notes", FACTS.encode()


def make_older(directory: Path, *, format: int = STORE_FORMAT - 1) -> None:  # noqa: A002
    engine = LmdbEngine.open(directory)
    engine.commit([(append("a", 0, message("number 0")),), (append("a", 1, message("number 1")),)])
    engine.commit([(PutFact(name="greeting", value=b"hello"),)])
    engine.close()
    with open_env(directory, map_size_bytes=1 << 26) as env:
        _move(env, NEW, OLD)
        write_format(env, format)


def STEP(env: lmdb.Environment) -> None:  # noqa: N802 - a constant that happens to be a function
    _move(env, OLD, NEW)


def _move(env: lmdb.Environment, source: bytes, target: bytes) -> None:
    before, after = env.open_db(source), env.open_db(target)
    with env.begin(write=True) as txn:
        for key, value in txn.cursor(before):
            txn.put(key, value, db=after)
        txn.drop(before)


def notes_of(directory: Path) -> tuple[int, bytes | None, bytes | None]:
    """The store's format, and what it holds of the note under the old and the new name."""
    with open_env(directory, map_size_bytes=0, readonly=True) as env, env.begin() as txn:
        meta = txn.get(b"store", db=env.open_db(b"meta", txn=txn, create=False))
        assert meta is not None
        key = text_key("greeting")
        found: list[bytes | None] = []
        for table in (OLD, NEW):
            try:
                value = txn.get(key, db=env.open_db(table, txn=txn, create=False))
            except lmdb.NotFoundError:
                value = None
            found.append(codec.unpack(codec.unseal(key, value))[1] if value else None)
        return codec.unpack(codec.unseal(b"store", meta))[1], found[0], found[1]


if __name__ == "__main__":
    migrate(Path(sys.argv[1]), steps={STORE_FORMAT - 1: STEP})
