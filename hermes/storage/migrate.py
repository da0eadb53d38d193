"""From a store of an older format to one of today's, with the old one kept.

Not the store is migrated but a copy of it, which takes its place by one rename when it is finished and sound. So a
kill at any moment leaves the old store or the new one, whole; and the old file itself, under another name, is the
backup: `format-N` beside it. A step may do what it likes with its copy, in as many transactions as it likes.

When the format changes, STORE_FORMAT in env.py grows by one and the step that leads there is added to STEPS. New
tables, and new fields with defaults at the end of a value, are no change of the format.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import lmdb
from loguru import logger

from hermes.domain.errors import StorageError, StorageFormatError
from hermes.storage.copies import PART, clear_away, copy_into
from hermes.storage.env import DATA_FILE, STORE_FORMAT, describe, open_env, page_problems, write_format
from hermes.system.durable_file import sync_directory

Step: TypeAlias = Callable[[lmdb.Environment], None]

STEPS: Final[Mapping[int, Step]] = {}  # by the format that a step starts from; it leads to the next
_ROOM: Final = 4  # times its size is how far a copy may grow while it is migrated


def is_older(env: lmdb.Environment, directory: Path) -> bool:
    try:
        meta = describe(env, directory)
    except lmdb.Error:  # a page of it cannot be read: whoever takes the store over says so
        return False
    return meta is not None and meta.format < STORE_FORMAT


def kept_copy(directory: Path, number: int) -> Path:
    """Where the store is kept as it was when it had that format."""
    return directory / f"format-{number}"


def migrate(directory: Path, *, steps: Mapping[int, Step] = STEPS, to: int = STORE_FORMAT) -> None:
    """Bring a store that nobody uses to that format. Nothing is done to one that has it already."""
    clear_away(directory)
    part = directory / PART
    try:
        with open_env(directory, map_size_bytes=0, readonly=True) as env:
            meta = describe(env, directory)
            if meta is None or meta.format >= to:
                return
            _require_way(directory, meta.format, steps, to)
            logger.info("the store in {} has format {} and is migrated to {}", directory, meta.format, to)
            part.mkdir(mode=0o700)
            copy_into(env, part / DATA_FILE)
        _take_steps(part, [steps[number] for number in range(meta.format, to)], to)
        if problems := page_problems(part):
            raise StorageError(f"the migrated copy is not sound ({problems[0]}); the store was left as it is")
        _exchange(directory, part, kept_copy(directory, meta.format))
        logger.info("the store has format {} now; it is kept as it was in {}", to, kept_copy(directory, meta.format))
    except (lmdb.Error, OSError) as error:
        raise StorageError(f"{directory} was not migrated and is as it was: {error}") from error
    finally:
        clear_away(directory)


def _require_way(directory: Path, number: int, steps: Mapping[int, Step], to: int) -> None:
    missing = [str(each) for each in range(number, to) if each not in steps]
    if missing:
        raise StorageFormatError(
            f"{directory} has format {number}, and this Hermes knows no way from format {missing[0]} to {to}: "
            "open it with an earlier version first, which migrates it a part of the way"
        )


def _take_steps(part: Path, steps: list[Step], to: int) -> None:
    with open_env(part, map_size_bytes=_ROOM * (part / DATA_FILE).stat().st_size + (64 << 20)) as env:
        for step in steps:
            step(env)
        write_format(env, to)
        env.sync(True)


def _exchange(directory: Path, part: Path, kept: Path) -> None:
    """The old file gets a second name before the new one takes its first."""
    kept.mkdir(mode=0o700, exist_ok=True)
    (kept / DATA_FILE).unlink(missing_ok=True)  # of an attempt that was cut off here
    os.link(directory / DATA_FILE, kept / DATA_FILE)
    sync_directory(kept)
    sync_directory(directory)
    (part / DATA_FILE).replace(directory / DATA_FILE)
    sync_directory(directory)
