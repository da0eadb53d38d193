"""Copies of a store: a hot backup, and a compacted copy that replaces the original.

A copy is written under another name, synced, and renamed when complete. An interruption leaves the original untouched
and at most a partial file, which the next start removes.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

import lmdb

from hermes.domain.errors import StorageError
from hermes.storage.env import DATA_FILE, describe, open_env, require_ours
from hermes.storage.verify import verify
from hermes.system.durable_file import sync_directory

PART: Final = "compact.part"  # partial copy, which replaces the original when complete


def back_up(env: lmdb.Environment, target: Path) -> None:
    """Copy a store that is in use to a directory that does not exist or is empty."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise StorageError(f"{target} already exists and is not empty: a backup needs a new or empty directory")
        if not target.parent.is_dir():
            raise StorageError(f"no backup was made: the directory {target.parent} does not exist")
        part.mkdir(mode=0o700)
        copy_into(env, part / DATA_FILE)
        sync_directory(part)
        part.rename(target)
        sync_directory(target.parent)
    except (lmdb.Error, OSError) as error:
        raise StorageError(f"no backup was made in {target}: {error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def compact(directory: Path) -> tuple[int, int]:
    """Rewrite an unused store without its free pages. Return its size in bytes before and after."""
    remove_partial_copy(directory)
    part = directory / PART
    data = directory / DATA_FILE
    try:
        before = data.stat().st_size
        with open_env(directory, map_size_bytes=0, readonly=True) as env:
            require_ours(env, directory)
            part.mkdir(mode=0o700)
            copy_into(env, part / DATA_FILE)
        if problems := verify(part):
            raise StorageError(f"nothing was changed: the copy is damaged ({problems[0]})")
        (part / DATA_FILE).replace(data)
        sync_directory(directory)
        return before, data.stat().st_size
    except (lmdb.Error, OSError) as error:
        raise StorageError(f"{directory} was not compacted: {error}") from error
    finally:
        remove_partial_copy(directory)


def copy_store(source: Path, target: Path) -> None:
    """Copy an unused store, such as a backup, to a new directory."""
    try:
        with open_env(source, map_size_bytes=0, readonly=True) as env:
            describe(env, source)
            back_up(env, target)
    except lmdb.Error as error:
        raise StorageError(f"{source} cannot be copied: {error}") from error


def remove_partial_copy(directory: Path) -> None:
    """Remove files that an interrupted compaction or migration left."""
    shutil.rmtree(directory / PART, ignore_errors=True)


def copy_into(env: lmdb.Environment, file: Path) -> None:
    """Copy the store without its free pages to a new file."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        env.copyfd(descriptor, compact=True)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
