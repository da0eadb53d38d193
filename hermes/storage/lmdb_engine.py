"""Engine over LMDB: the store on disk.

A batch is one synced commit. A full map grows. A full disk refuses the batch and leaves the store usable. Any other
error means that the disk cannot be trusted. On a full disk even erasing needs pages, so a reserve file is released
for it and recreated when there is space.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

import lmdb
from loguru import logger

from hermes.domain.errors import ForeignStoreError, HermesError, StorageFailedError, StorageFullError
from hermes.domain.ids import Epoch
from hermes.domain.operations import Erase
from hermes.domain.read.reader import StoreStats
from hermes.ports.storage import Engine, Transaction
from hermes.storage.commit_plan import WritePlan
from hermes.storage.copies import back_up, remove_partial_copy
from hermes.storage.env import DATA_FILE, claim, free_bytes, has_address_space, open_env, roomy_map_size, translated
from hermes.storage.filesystem import Headroom, Reserve, make_private, prepare
from hermes.storage.lmdb_reader import LmdbReader
from hermes.storage.migrate import is_older, migrate
from hermes.storage.pages import DataPages
from hermes.storage.row_keys import BAD, DEAD, LOG, OUTBOX, PENDING, SESSIONS, TABLES, lsn_key, lsn_of
from hermes.storage.rows import Known
from hermes.storage.stage import Changed

MAP_SIZE_BYTES: Final = 16 * 2**30  # address space, not disk: large, so that it rarely has to grow
_GROW_BEYOND: Final = 0.75  # of the map used
GROW_TIMEOUT_S: Final = 5.0


class LmdbEngine(LmdbReader, Engine):
    def __init__(
        self,
        env: lmdb.Environment,
        tables: dict[str, Any],
        epoch: Epoch,
        directory: Path,
        *,
        grow_timeout_s: float = GROW_TIMEOUT_S,
    ) -> None:
        super().__init__(env, tables, DataPages(directory / DATA_FILE, env.stat()["psize"]))
        self._epoch = epoch
        self._directory = directory
        self._grow_timeout_s = grow_timeout_s
        self._reserve = Reserve(directory)
        self._reserve.fill()
        self._headroom = Headroom(directory / DATA_FILE)
        self._page_size = env.stat()["psize"]
        self._forget_from = b""
        self._known: Known = {}
        self._no_address_space = False  # the last attempt to grow found no address space
        self._commits = self._transactions = 0
        self._last_commit_s = self._commits_took_s = 0.0
        with self._view() as view:
            self._last_lsn = view.last_key(LOG) or lsn_key(0)

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        map_size_bytes: int = MAP_SIZE_BYTES,
        grow_timeout_s: float = GROW_TIMEOUT_S,
        made_before: bool = False,
    ) -> Self:
        """Open or create the store in a directory. Not twice in one process, and not across a fork.

        `made_before`: Hermes has created a store here, so a file without one is damaged. It stays unchanged.
        """
        try:
            return cls._opened(directory, map_size_bytes, grow_timeout_s, may_create=not made_before)
        except ForeignStoreError as error:
            if not made_before:
                raise
            raise StorageFailedError(
                f"the store in {directory} is damaged: its root pages cannot be read; "
                "nothing was changed; run `hermes restore BACKUP`"
            ) from error

    @classmethod
    def _opened(cls, directory: Path, map_size_bytes: int, grow_timeout_s: float, *, may_create: bool) -> Self:
        prepare(directory)
        remove_partial_copy(directory)
        env = open_env(directory, map_size_bytes=roomy_map_size(directory, map_size_bytes))
        try:
            if is_older(env, directory):
                env.close()
                migrate(directory)
                env = open_env(directory, map_size_bytes=roomy_map_size(directory, map_size_bytes))
            if not may_create:
                _require_tables(env, directory)
            env.reader_check()
            tables, epoch = _claim(env, directory)
            make_private(directory)
            return cls(env, tables, epoch, directory, grow_timeout_s=grow_timeout_s)
        except BaseException:
            env.close()
            raise

    @property
    def epoch(self) -> Epoch:
        return self._epoch

    def commit(self, batch: Sequence[Transaction]) -> list[HermesError | None]:
        began = time.perf_counter()
        try:
            outcomes = self._attempt(batch)
        except StorageFullError as full:
            outcomes = self._erase_only(batch, full)
        self._commits += 1
        self._transactions += len(batch)
        self._last_commit_s = time.perf_counter() - began
        self._commits_took_s += self._last_commit_s
        self._maintain()
        return outcomes

    def last_position(self) -> int:
        return lsn_of(self._last_lsn)

    def backup(self, target: Path) -> None:
        with self._gate:
            back_up(self._env, target)

    def close(self) -> None:
        with self._gate.closed(self._grow_timeout_s):
            self._env.close()
        self._headroom.close()
        self._pages.close()

    def stats(self) -> StoreStats:
        with self._view() as view:
            self._env.reader_check()  # a killed reader would keep its pages from being reused
            counts = {table: view.count(table) for table in TABLES}
            used = sum(view.pages(table) for table in TABLES) * self._page_size
        return StoreStats(
            engine="lmdb",
            path=str(self._directory),
            sessions=counts[SESSIONS],
            records=counts[LOG],
            pending=counts[PENDING],
            dead_letters=counts[DEAD],
            bad_records=counts[BAD] + len(self._lost),
            outbox=counts[OUTBOX],
            size_bytes=(self._directory / DATA_FILE).stat().st_size,
            used_bytes=used,
            map_bytes=self._env.info()["map_size"],
            free_disk_bytes=free_bytes(self._directory),
            readers=sum(
                not slot.endswith("-") for slot in self._env.readers().splitlines()[1:]
            ),  # "-" marks a free slot
            commits=self._commits,
            transactions=self._transactions,
            last_commit_s=self._last_commit_s,
            commits_took_s=self._commits_took_s,
        )

    def _attempt(self, batch: Sequence[Transaction]) -> list[HermesError | None]:
        damaged = dict(self._damaged)
        with self._view() as view:
            next_lsn = lsn_of(self._last_lsn) + 1
            plan = WritePlan(view, next_lsn=next_lsn, forget_from=self._forget_from, known=self._known)
            for lsn, found in damaged.items():
                plan.set_aside(lsn, *found)
            outcomes = [plan.add(transaction) for transaction in batch]
            changes = plan.changes()
            erased = sorted(lsn for lsn, value in changes[LOG].items() if value is None)
            if erased and not view.can_shrink(LOG, erased):  # LMDB would crash on a lost page next to them
                changes[LOG].update(dict.fromkeys(erased, b""))
        if any(changes.values()):
            self._store(changes)
        plan.done()
        self._last_lsn, self._forget_from = lsn_key(plan.next_lsn - 1), plan.forget_from
        for lsn in damaged:
            del self._damaged[lsn]
        return outcomes

    def _erase_only(self, batch: Sequence[Transaction], full: StorageFullError) -> list[HermesError | None]:
        """Let erasures use the reserve. The other transactions fail with `full`."""
        erasing = [n for n, transaction in enumerate(batch) if any(isinstance(each, Erase) for each in transaction)]
        if not erasing or not self._reserve.release():
            raise full
        logger.warning("storage: the disk is full; {} erasures use the reserve", len(erasing))
        outcomes: list[HermesError | None] = [full] * len(batch)
        for n, outcome in zip(erasing, self._attempt([batch[n] for n in erasing]), strict=True):
            outcomes[n] = outcome
        return outcomes

    def _store(self, changes: dict[str, Changed]) -> None:
        try:
            while not self._written(changes):
                if not self._grow(self._grow_timeout_s):
                    why = "no address space" if self._no_address_space else "is a backup running?"
                    raise StorageFullError(
                        f"the store's map is full and cannot grow now ({why}): nothing was written; try again"
                    )
        except lmdb.Error as error:
            raise translated(error, self._directory) from error

    def _written(self, changes: dict[str, Changed]) -> bool:
        try:
            self._write(changes)
        except lmdb.MapFullError:
            return False
        return True

    def _write(self, changes: dict[str, Changed]) -> None:
        """Write all changes with few calls: each call releases the GIL and may wait for it."""
        with self._env.begin(write=True) as txn:
            for table, changed in changes.items():
                if changed:
                    self._write_table(txn, table, changed)

    def _write_table(self, txn: lmdb.Transaction[bytes], table: str, changed: Changed) -> None:
        gone = [key for key, value in changed.items() if value is None]
        for key in gone:
            txn.delete(key, db=self._tables[table])
        puts = {key: value for key, value in changed.items() if value is not None} if gone else changed
        at_end = table == LOG and not gone and min(changed) > self._last_lsn
        txn.cursor(self._tables[table]).putmulti(puts.items(), append=at_end)  # type: ignore[arg-type]  # no None left

    def _maintain(self) -> None:
        """Grow the map and refill the reserve. Runs after a commit, when no caller waits."""
        info = self._env.info()
        used_bytes = (info["last_pgno"] + 1) * self._page_size
        if used_bytes > _GROW_BEYOND * info["map_size"]:
            self._grow(timeout_s=0.0)
        self._headroom.keep(used_bytes)
        self._reserve.fill()

    def _grow(self, timeout_s: float) -> bool:
        """Double the map. Checks the address space first: a failed attempt leaves the store without a map."""
        size = 2 * self._env.info()["map_size"]
        known, self._no_address_space = self._no_address_space, not has_address_space(size // 2)
        if self._no_address_space:
            if not known:
                logger.warning("storage: the map cannot grow to {} MiB: not enough address space", size // 2**20)
            return False
        with self._gate.closed(timeout_s) as empty:
            if not empty:
                return False
            try:
                self._env.set_mapsize(size)
            except lmdb.Error as error:  # the store has no map now; the next read reports it
                logger.error("storage: the map cannot grow to {} MiB: {}", size // 2**20, error)
                return False
        logger.info("storage: the map has grown to {} MiB", size // 2**20)
        return True


def _require_tables(env: lmdb.Environment, directory: Path) -> None:
    if not env.stat()["entries"]:
        raise ForeignStoreError(f"the store in {directory} is empty")


def _claim(env: lmdb.Environment, directory: Path) -> tuple[dict[str, Any], Epoch]:
    """Take ownership. On a full disk this uses the reserve, so that the daemon can at least serve reads."""
    try:
        return claim(env, directory)
    except lmdb.Error as error:
        problem = translated(error, directory)
        if not isinstance(problem, StorageFullError) or not Reserve(directory).release():
            raise problem from error
    try:
        return claim(env, directory)
    except lmdb.Error as error:
        raise translated(error, directory) from error
