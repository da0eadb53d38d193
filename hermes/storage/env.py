"""LMDB environment: opening and reading it.

It uses full sync and no write map; anything less loses data at a power failure or crashes on a full disk. There is
one environment per process, never across a fork. Reads copy their data; no transaction, cursor or buffer leaves this
package.
"""

from __future__ import annotations

import errno
import mmap
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, Final, Self

import lmdb

from hermes.domain.errors import (
    ForeignStoreError,
    StorageError,
    StorageFailedError,
    StorageFormatError,
    StorageFullError,
)
from hermes.domain.ids import Epoch
from hermes.domain.values import dataclass, replace
from hermes.storage import codec
from hermes.storage.codec import DamagedError, LostPageError, UnreadableError
from hermes.storage.pages import DataPages
from hermes.storage.row_keys import LATER, META, TABLES
from hermes.system.durable_file import sync_directory

DATA_FILE: Final = "data.mdb"
STORE_FORMAT: Final = 1
_PRODUCT: Final = "hermes"
_ENGINE: Final = 0  # LMDB 0.9's file format; never the library's default, which may change
_META_KEYS: Final = (b"store", b"store.copy")  # two copies, so that one damaged byte does not lose the store
_SHORT_OF_BYTES: Final = 1 << 20
_MIN_ROOM_BYTES: Final = 16 << 20
_ROOM_SHARE: Final = 8  # a map is at least one eighth larger than its file
_FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_PAGE_LOST: Final = (lmdb.CorruptedError, lmdb.PageNotFoundError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    product: str
    format: int
    epoch: int
    lmdb: str
    created_at: float


class StoreView:
    """Read transaction of the store. A table that does not exist yet is empty."""

    __slots__ = ("_env", "_pages", "_scanned", "_spent", "_tables", "_txn")

    def __init__(self, env: lmdb.Environment, tables: dict[str, Any], pages: DataPages) -> None:
        self._env = env
        self._tables = tables
        self._pages = pages
        self._txn = env.begin()
        self._scanned = False
        self._spent: list[lmdb.Transaction[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for txn in (self._txn, *self._spent):
            txn.abort()

    def get(self, table: str, key: bytes) -> bytes | None:
        """Return a value, or None. The view stays usable after a LostPageError."""
        if table not in self._tables:
            return None
        try:
            return self._txn.get(key, db=self._tables[table])
        except _PAGE_LOST as error:
            self._renew()
            raise LostPageError from error

    def scan(self, table: str, prefix: bytes = b"", start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield pairs in key order, from `start` or the first key with the prefix. Skips lost pages."""
        description = self._txn.get(table.encode())
        if description is None:
            return
        self._scanned = True
        for key, value in self._pages.walk(description, start or prefix):
            if not key.startswith(prefix):
                return
            yield key, value

    def _renew(self) -> None:
        """Replace the transaction after an error. The old one is kept while a scan still needs its pages."""
        if self._scanned:
            self._spent.append(self._txn)
        else:
            self._txn.abort()
        self._txn = self._env.begin()
        self._scanned = False

    def can_shrink(self, table: str, keys: Sequence[bytes]) -> bool:
        description = self._txn.get(table.encode())
        return description is not None and self._pages.can_shrink(description, keys)

    def last_key(self, table: str) -> bytes | None:
        cursor = self._txn.cursor(self._tables[table])
        return cursor.key() if cursor.last() else None

    def count(self, table: str) -> int:
        return self._txn.stat(self._tables[table])["entries"] if table in self._tables else 0

    def pages(self, table: str) -> int:
        stat = self._txn.stat(self._tables[table])
        return stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]


def translated(error: lmdb.Error, directory: Path | None = None) -> StorageError:
    # LMDB reports a short write on a full disk as EIO. Nothing of it was synced.
    cut_short = error.code == errno.EIO and directory is not None and is_full(directory)
    if error.code in _FULL or cut_short:
        return StorageFullError(
            "no space left on the disk (or the file may not grow): nothing was written; "
            "free some space, or run `hermes storage compact`"
        )
    if isinstance(error, _PAGE_LOST):
        return StorageFailedError(f"a required page cannot be read ({error}): restore a backup of the store")
    return StorageFailedError(f"the store can no longer be used: {error}")


def is_full(directory: Path) -> bool:
    """Return whether the data file cannot grow (full disk, quota, file size limit). Tries to grow it."""
    if free_bytes(directory) < _SHORT_OF_BYTES:
        return True
    try:
        with (directory / DATA_FILE).open("ab", buffering=0) as file:
            return file.write(bytes(_SHORT_OF_BYTES)) < _SHORT_OF_BYTES
    except OSError as error:
        return error.errno in _FULL


def has_address_space(size_bytes: int) -> bool:
    """Return whether a map can grow by this many bytes. Maps them briefly to find out."""
    try:
        mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ).close()
    except (OSError, OverflowError):
        return False
    return True


def free_bytes(directory: Path) -> int:
    disk = os.statvfs(directory)
    return disk.f_bavail * disk.f_frsize


def require_bundled(version: tuple[int, ...]) -> None:
    """Require py-lmdb's own patched build: the system library can crash on a damaged file."""
    if version[3:] != (1,):
        raise StorageError("lmdb was built on the system's library; install the lmdb package's own build instead")


def open_env(directory: Path, *, map_size_bytes: int, readonly: bool = False) -> lmdb.Environment:
    require_bundled(lmdb.version(subpatch=True, lib_version=_ENGINE))
    env = _open(directory, map_size_bytes, readonly)
    promised = (env.info()["last_pgno"] + 1) * env.stat()["psize"]
    if (directory / DATA_FILE).stat().st_size >= promised:
        return env
    env.close()  # only free pages may be missing: a read of any other page past the end kills the process
    if problems := page_problems(directory):
        raise StorageFailedError(f"{directory / DATA_FILE} is truncated ({problems[0]}): restore a backup")
    return _open(directory, map_size_bytes, readonly)


def roomy_map_size(directory: Path, configured_bytes: int) -> int:
    """Return a map size that leaves room to write beyond the data file.

    LMDB raises a smaller map to exactly the size of the file. A compacted file has no free page, so the first write
    to it would fail.
    """
    data = directory / DATA_FILE
    size = data.stat().st_size if data.exists() else 0
    return max(configured_bytes, size + max(size // _ROOM_SHARE, _MIN_ROOM_BYTES) if size else 0)


def page_problems(directory: Path) -> list[str]:
    """Return the problems of the file, found by py-lmdb's verifier, which reads it without the engine."""
    from lmdb.verify import VerifyError  # noqa: PLC0415 - for a backup, a repair or `hermes storage verify` alone
    from lmdb.verify import verify as walk_pages  # noqa: PLC0415

    try:
        problems: list[str] = walk_pages(str(directory))  # type: ignore[no-untyped-call]
    except VerifyError as error:
        return [str(error)]
    return problems


def claim(env: lmdb.Environment, directory: Path) -> tuple[dict[str, Any], Epoch]:
    """Take ownership of the store: increase the epoch, which makes every earlier writer a stale owner.

    Nothing else uses this environment yet, so a full map can grow.
    """
    while True:
        try:
            return _claim(env, directory)
        except lmdb.MapFullError:
            size_bytes = env.info()["map_size"]
            if not has_address_space(size_bytes):
                raise
            env.set_mapsize(2 * size_bytes)


def _claim(env: lmdb.Environment, directory: Path) -> tuple[dict[str, Any], Epoch]:
    version = ".".join(map(str, env.lib_version()))
    meta = require_ours(env, directory)
    if meta is None:
        meta = Meta(product=_PRODUCT, format=STORE_FORMAT, epoch=0, lmdb=version, created_at=time.time())
    with env.begin(write=True) as txn:
        tables = {table: env.open_db(table.encode(), txn=txn) for table in TABLES}
        _write_meta(txn, tables[META], replace(meta, epoch=meta.epoch + 1, lmdb=version))
    sync_directory(directory)
    return tables, Epoch(meta.epoch + 1)


def write_format(env: lmdb.Environment, number: int) -> None:
    """Set the format number, as the last step of a migration."""
    metas = [meta for key, value in _meta_values(env).items() for meta in _meta_of(key, value)]
    table = env.open_db(META.encode(), create=False)
    with env.begin(write=True) as txn:
        _write_meta(txn, table, replace(metas[0], format=number))


def _write_meta(txn: lmdb.Transaction[bytes], table: Any, meta: Meta) -> None:
    payload = codec.pack([meta.product, meta.format, meta.epoch, meta.lmdb, meta.created_at])
    for key in _META_KEYS:
        txn.put(key, codec.seal(key, payload), db=table)


def open_tables(env: lmdb.Environment) -> dict[str, Any]:
    """Open the tables for a reader. Tables that an older Hermes did not have may be missing."""
    tables = {}
    for table in TABLES:
        with suppress(lmdb.NotFoundError) if table in LATER else nullcontext():
            tables[table] = env.open_db(table.encode(), create=False)
    return tables


def require_ours(env: lmdb.Environment, directory: Path) -> Meta | None:
    """Return the description of a store in the current format; None for a new store."""
    meta = describe(env, directory)
    if meta is not None and meta.format < STORE_FORMAT:
        raise StorageFormatError(
            f"{directory} has the older format {meta.format} and this Hermes uses {STORE_FORMAT}: "
            "start the daemon once, which migrates it and keeps a copy"
        )
    return meta


def describe(env: lmdb.Environment, directory: Path) -> Meta | None:
    """Return the description of a store in a known format. Refuses foreign and newer stores, unchanged."""
    if not env.stat()["entries"]:
        return None
    found = _meta_values(env)
    metas = [meta for key, value in found.items() for meta in _meta_of(key, value)]
    if not found or any(meta.product != _PRODUCT for meta in metas):
        raise ForeignStoreError(f"{directory} holds an LMDB store of another program: choose another directory")
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
    except lmdb.InvalidError as error:
        raise ForeignStoreError(f"{directory} does not hold a Hermes store: {error}") from error
    except lmdb.VersionMismatchError as error:
        raise StorageFormatError(f"{directory} does not hold a Hermes store: {error}") from error
    except lmdb.Error as error:
        raise StorageError(f"the store in {directory} cannot be opened: {error}") from error
