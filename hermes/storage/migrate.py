"""Migration of a store from an older format to the current one. The old store is kept.

A copy of the store is migrated. When it is complete and verified, one rename puts it in place. So a kill at any
moment leaves either the old store or the new one. The old file stays in `format-N` as a backup. A step may change its
copy freely, in any number of transactions.

When the format changes, increase STORE_FORMAT in env.py and add the step that leads there to STEPS. New tables, and
new fields with defaults at the end of a value, do not change the format.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import lmdb
from loguru import logger

from hermes.domain.errors import StorageError, StorageFormatError
from hermes.storage.copies import PART, copy_into, remove_partial_copy
from hermes.storage.env import DATA_FILE, STORE_FORMAT, describe, open_env, page_problems, write_format
from hermes.system.durable_file import sync_directory

Step: TypeAlias = Callable[[lmdb.Environment], None]

STEPS: Final[Mapping[int, Step]] = {}  # by the format that the step starts from; it leads to the next one
_ROOM: Final = 4  # a copy may grow to this many times its size during the migration


def is_older(env: lmdb.Environment, directory: Path) -> bool:
    try:
        meta = describe(env, directory)
    except lmdb.Error:  # a page cannot be read: reported when the store is claimed
        return False
    return meta is not None and meta.format < STORE_FORMAT


def kept_copy(directory: Path, number: int) -> Path:
    """Return the directory of the kept store in an older format."""
    return directory / f"format-{number}"


def migrate(directory: Path, *, steps: Mapping[int, Step] = STEPS, to: int = STORE_FORMAT) -> None:
    """Migrate an unused store to a format. Does nothing if it already has that format."""
    remove_partial_copy(directory)
    part = directory / PART
    try:
        with open_env(directory, map_size_bytes=0, readonly=True) as env:
            meta = describe(env, directory)
            if meta is None or meta.format >= to:
                return
            _require_way(directory, meta.format, steps, to)
            logger.info("storage: migrating {} from format {} to {}", directory, meta.format, to)
            part.mkdir(mode=0o700)
            copy_into(env, part / DATA_FILE)
        _take_steps(part, [steps[number] for number in range(meta.format, to)], to)
        if problems := page_problems(part):
            raise StorageError(f"the migrated copy is damaged ({problems[0]}); the store was not changed")
        _exchange(directory, part, kept_copy(directory, meta.format))
        logger.info(
            "storage: the store has format {} now; the old store is kept in {}", to, kept_copy(directory, meta.format)
        )
    except (lmdb.Error, OSError) as error:
        raise StorageError(f"{directory} was not migrated and is unchanged: {error}") from error
    finally:
        remove_partial_copy(directory)


def _require_way(directory: Path, number: int, steps: Mapping[int, Step], to: int) -> None:
    missing = [str(each) for each in range(number, to) if each not in steps]
    if missing:
        raise StorageFormatError(
            f"{directory} has format {number}, and this Hermes cannot migrate format {missing[0]} to {to}: "
            "open it with an earlier version first, which migrates it to a later format"
        )


def _take_steps(part: Path, steps: list[Step], to: int) -> None:
    with open_env(part, map_size_bytes=_ROOM * (part / DATA_FILE).stat().st_size + (64 << 20)) as env:
        for step in steps:
            step(env)
        write_format(env, to)
        env.sync(True)


def _exchange(directory: Path, part: Path, kept: Path) -> None:
    """Replace the store by its copy. The old file gets its second name first."""
    kept.mkdir(mode=0o700, exist_ok=True)
    (kept / DATA_FILE).unlink(missing_ok=True)  # left by an attempt that was interrupted here
    os.link(directory / DATA_FILE, kept / DATA_FILE)
    sync_directory(kept)
    sync_directory(directory)
    (part / DATA_FILE).replace(directory / DATA_FILE)
    sync_directory(directory)
