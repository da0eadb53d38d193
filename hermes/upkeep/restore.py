"""Putting a backup in the place of a home's contents.

Everything is unpacked, checked and brought to today's format beside them first; only then the present contents are
moved aside, and nothing of them is ever deleted. The store leaves first and comes last: whatever cuts this off, the
home has the old store, the new one, or none, with which no daemon starts; and the same command once more does it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from hermes.durable import sync_directory
from hermes.home import Home, note_store
from hermes.storage.copies import copy_store
from hermes.storage.env import DATA_FILE
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.types import SessionId
from hermes.upkeep.archive import BackupError, Manifest, Progress, unpack
from hermes.upkeep.backup import CONFIG, KEPT, KEY, STORE
from hermes.values import dataclass

_PART: Final = "restore.part"
_INDEX: Final = "index"  # made anew from the store


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    manifest: Manifest | None  # None: a mere copy of the store was restored
    kept_in: Path | None  # where the present contents went; None: there were none
    names: tuple[str, ...]  # what was put in place
    open_sessions: tuple[SessionId, ...]  # had work in flight then, and take it up at the next start
    owed: int  # messages that were to be said then, and will be
    problems: tuple[str, ...] = ()  # that the store had already when it was copied


def restore(home: Home, source: Path, *, check: Callable[[Path], list[str]], progress: Progress) -> Restored:
    """For a home that this process has locked. Raises BackupError, and then nothing was changed."""
    part = home.data_dir / _PART
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(mode=0o700)
    try:
        manifest = _fetch(source, part, progress)
        progress("checking the store", 0, 0)
        open_sessions, owed = _bring_up_to_date(part / STORE)
        problems = check(part / STORE)
        if strange := [each for each in problems if manifest is None or each not in manifest.problems]:
            raise BackupError(f"the store in {source} is not sound ({strange[0]}); nothing was changed")
        kept_in, names = _exchange(home, part, whole=manifest is not None)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    progress("checking what is in place now", 0, 0)
    if wrong := [each for each in check(home.store_dir) if each not in problems]:
        raise BackupError(f"the restored store is not sound ({wrong[0]}); what was there before is in {kept_in}")
    return Restored(
        manifest=manifest,
        kept_in=kept_in,
        names=names,
        open_sessions=open_sessions,
        owed=owed,
        problems=tuple(problems),
    )


def _fetch(source: Path, part: Path, progress: Progress) -> Manifest | None:
    if not source.is_dir():
        manifest = unpack(source, part, progress)
        if not (part / STORE / DATA_FILE).is_file():
            raise BackupError(f"{source} holds no store; nothing was changed")
        return manifest
    if not (source / DATA_FILE).is_file():
        raise BackupError(f"{source} is neither an archive made by `hermes backup` nor a copy of a store")
    progress("copying the store", 0, 0)
    copy_store(source, part / STORE)
    return None


def _bring_up_to_date(store: Path) -> tuple[tuple[SessionId, ...], int]:
    """An older one is migrated here, where a failure costs nothing. What the next start will go on with."""
    engine = LmdbEngine.open(store)
    try:
        return tuple(engine.pending()), len(engine.outbox())
    finally:
        engine.close()


def _exchange(home: Home, part: Path, *, whole: bool) -> tuple[Path | None, tuple[str, ...]]:
    places = _places(home) if whole else {STORE: home.store_dir}
    if not (part / KEY).exists():
        places.pop(KEY, None)  # the present key goes on being valid
    aside = _new_directory(home.data_dir, time.time())
    for name, place in places.items():
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()
        elif place.exists():
            _move(place, aside / name)
    shutil.rmtree(home.data_dir / _INDEX, ignore_errors=True)
    brought = [name for name in reversed(places) if (part / name).exists()]
    for name in brought:  # the store is the last
        places[name].parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _move(part / name, places[name])
    note_store(home)
    sync_directory(home.data_dir)
    if not any(aside.iterdir()):
        aside.rmdir()
        return None, tuple(brought)
    return aside, tuple(brought)


def _places(home: Home) -> dict[str, Path]:
    """Where each part of a backup belongs, the store first."""
    inside = {name: home.data_dir / name for name in KEPT}
    return {STORE: home.store_dir, CONFIG: home.config_file, KEY: home.api_key_file, **inside}


def _new_directory(home: Path, now: float) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    for number in range(1, 1000):
        aside = home / (f"before-restore-{stamp}" if number == 1 else f"before-restore-{stamp}-{number}")
        try:
            aside.mkdir(mode=0o700)
        except FileExistsError:  # twice in one second
            continue
        return aside
    raise BackupError(f"{home} has no room for one more directory of what was there before a restore")


def _move(source: Path, target: Path) -> None:
    """The configuration may be on another disk than the data."""
    shutil.move(source, target)
    sync_directory(target.parent)
