"""Opening the LMDB environment, and looking into it.

Full sync and no write map: anything less loses data at a power cut or dies with the disk full. One environment per
process, never across a fork. A look copies what it reads; no transaction, cursor or buffer leaves this package.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import lmdb
from lmdb.verify import VerifyError
from lmdb.verify import verify as walk_pages

from hermes.errors import StorageError, StorageFailedError, StorageFormatError, StorageFullError
from hermes.storage import codec
from hermes.storage.codec import DamagedError, UnreadableError
from hermes.storage.filesystem import sync_directory
from hermes.storage.keys import META, TABLES
from hermes.types import Epoch
from hermes.values import dataclass

DATA_FILE: Final = "data.mdb"
STORE_FORMAT: Final = 1
_PRODUCT: Final = "hermes"
_ENGINE: Final = 0  # LMDB 0.9's file format; never the library's default, which may change
_META_KEYS: Final = (b"store", b"store.copy")  # one damaged byte must not cost the whole store
_SHORT_OF_BYTES: Final = 1 << 20
_FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_NOT_OURS: Final = (lmdb.InvalidError, lmdb.VersionMismatchError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    product: str
    format: int
    epoch: int
    lmdb: str
    created_at: float


class View:
    """One look at the store."""

    __slots__ = ("_tables", "_txn")

    def __init__(self, txn: lmdb.Transaction[bytes], tables: dict[str, Any]) -> None:
        self._txn = txn
        self._tables = tables

    def get(self, table: str, key: bytes) -> bytes | None:
        return self._txn.get(key, db=self._tables[table])

    def scan(self, table: str, prefix: bytes = b"", start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """In key order, from `start` or the first that has the prefix."""
        cursor = self._txn.cursor(self._tables[table])
        if not cursor.set_range(start or prefix):
            return
        for key, value in cursor:
            if not key.startswith(prefix):
                return
            yield key, value

    def last_key(self, table: str) -> bytes | None:
        cursor = self._txn.cursor(self._tables[table])
        return cursor.key() if cursor.last() else None

    def count(self, table: str) -> int:
        return self._txn.stat(self._tables[table])["entries"]

    def pages(self, table: str) -> int:
        stat = self._txn.stat(self._tables[table])
        return stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]


def translated(error: lmdb.Error, directory: Path | None = None) -> StorageError:
    # A write that was cut short by a full disk is an EIO of LMDB's own making; nothing of it was synced.
    cut_short = error.code == errno.EIO and directory is not None and free_bytes(directory) < _SHORT_OF_BYTES
    if error.code in _FULL or cut_short:
        return StorageFullError(
            "no space left on the disk: nothing was written; free some, or run `hermes storage compact`"
        )
    return StorageFailedError(f"the store cannot be used any more: {error}")


def free_bytes(directory: Path) -> int:
    disk = os.statvfs(directory)
    return disk.f_bavail * disk.f_frsize


def require_bundled(version: tuple[int, ...]) -> None:
    """Only py-lmdb's own, patched build survives a damaged file; a system library may crash on it."""
    if version[3:] != (1,):
        raise StorageError("lmdb was built on the system's library; install the lmdb package's own build instead")


def open_env(directory: Path, *, map_size_bytes: int, readonly: bool = False) -> lmdb.Environment:
    require_bundled(lmdb.version(subpatch=True, lib_version=_ENGINE))
    env = _open(directory, map_size_bytes, readonly)
    promised = (env.info()["last_pgno"] + 1) * env.stat()["psize"]
    if (directory / DATA_FILE).stat().st_size >= promised:
        return env
    env.close()  # only free pages may be missing: to read any other past the end of the file kills the process
    if problems := page_problems(directory):
        raise StorageFailedError(f"{directory / DATA_FILE} was cut short ({problems[0]}): restore a backup")
    return _open(directory, map_size_bytes, readonly)


def page_problems(directory: Path) -> list[str]:
    """What is wrong with the file as such, by LMDB's own walker, which reads it without the engine."""
    try:
        problems: list[str] = walk_pages(str(directory))  # type: ignore[no-untyped-call]
    except VerifyError as error:
        return [str(error)]
    return problems


def claim(env: lmdb.Environment, directory: Path) -> tuple[dict[str, Any], Epoch]:
    """Take the store over: the epoch grows, and whoever wrote before is a stale owner from now on."""
    version = ".".join(map(str, env.lib_version()))
    meta = require_ours(env, directory)
    if meta is None:
        meta = Meta(product=_PRODUCT, format=STORE_FORMAT, epoch=0, lmdb=version, created_at=time.time())
    payload = codec.pack([meta.product, meta.format, meta.epoch + 1, version, meta.created_at])
    with env.begin(write=True) as txn:
        tables = {table: env.open_db(table.encode(), txn=txn) for table in TABLES}
        for key in _META_KEYS:
            txn.put(key, codec.seal(key, payload), db=tables[META])
    sync_directory(directory)
    return tables, Epoch(meta.epoch + 1)


def require_ours(env: lmdb.Environment, directory: Path) -> Meta | None:
    """What the store says of itself; None for a new one. Foreign and newer ones are refused and left as they are."""
    if not env.stat()["entries"]:
        return None
    found = _meta_values(env)
    metas = [meta for key, value in found.items() for meta in _meta_of(key, value)]
    if not found or any(meta.product != _PRODUCT for meta in metas):
        raise StorageFormatError(f"{directory} holds an LMDB store that is not Hermes's: choose another directory")
    if not metas:
        raise StorageFormatError(f"{directory} was written by a newer Hermes, or its description is damaged")
    if metas[0].format > STORE_FORMAT:
        known = f"this Hermes knows formats up to {STORE_FORMAT}"
        raise StorageFormatError(f"{directory} has format {metas[0].format}, {known}: run the newer version")
    return metas[0]


def _meta_values(env: lmdb.Environment) -> dict[bytes, bytes]:
    try:
        table = env.open_db(META.encode(), create=False)
    except (lmdb.NotFoundError, lmdb.IncompatibleError):  # no such table, or a plain value of that name
        return {}
    with env.begin() as txn:
        return {key: value for key in _META_KEYS if (value := txn.get(key, db=table)) is not None}


def _meta_of(key: bytes, value: bytes) -> Iterator[Meta]:
    try:
        product, number, epoch, version, created_at = codec.unpack(codec.unseal(key, value))[:5]
    except (DamagedError, UnreadableError, TypeError, ValueError):
        return
    yield Meta(product=product, format=number, epoch=epoch, lmdb=version, created_at=created_at)


def _open(directory: Path, map_size_bytes: int, readonly: bool) -> lmdb.Environment:
    try:
        return lmdb.open(
            str(directory),
            map_size=map_size_bytes,
            max_dbs=32,
            max_readers=512,
            mode=0o600,
            readonly=readonly,
            create=not readonly,
            lib_version=_ENGINE,
        )
    except _NOT_OURS as error:
        raise StorageFormatError(f"{directory} does not hold a Hermes store: {error}") from error
    except lmdb.Error as error:
        raise StorageError(f"the store in {directory} cannot be opened: {error}") from error
