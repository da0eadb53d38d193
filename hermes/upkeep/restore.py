"""Putting a backup in the place of a home's contents.

Everything is unpacked, checked and brought to today's format beside them first; only then the present contents are
moved aside, and nothing of them is ever deleted. The store leaves first and comes last: whatever cuts this off, the
home has the old store, the new one, or none, with which no daemon starts; and the same command once more does it.

A configuration is put in place only if it is wanted. Of a backup that nobody vouches for, only conversations and
their files are taken, without any authority (distrust.py).
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from difflib import unified_diff
from enum import StrEnum
from pathlib import Path
from typing import Final

from hermes.config.home import Home, note_store
from hermes.domain.types import SessionId
from hermes.domain.values import dataclass
from hermes.processes.host import LinuxProcessHost
from hermes.storage.copies import copy_store
from hermes.storage.env import DATA_FILE
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.system.durable_file import sync_directory
from hermes.upkeep.archive import Progress, UnsealedError, unpack
from hermes.upkeep.backup import CONFIG, KEPT, KEY, PROCESSES, STORE
from hermes.upkeep.distrust import drop_authority
from hermes.upkeep.manifest import BackupError, Manifest
from hermes.upkeep.ownership import give_all
from hermes.upkeep.seal import Seal, find_key

_PART: Final = "restore.part"
_INDEX: Final = "index"  # made anew from the store
_HARMLESS: Final = ("work", "media")  # what is taken from a backup that nobody vouches for, besides the store
_HARMLESS_IN_WORK = ("files", "outputs")


class LiveProcessesError(BackupError):
    """Background processes of the home still run. Nothing was changed."""

    exit_code = 75

    def __init__(self, pids: Mapping[str, int]) -> None:
        names = ", ".join(f"{name} (pid {pid})" for name, pid in pids.items())
        numbers = " ".join(str(pid) for pid in pids.values())
        super().__init__(
            f"background processes of this home still run: {names}. After a restore no Hermes would know them. "
            f"Nothing was changed; end them with `kill {numbers}`, then restore again"
        )
        self.pids = dict(pids)


class ConfigFate(StrEnum):
    """What became of the configuration in the backup."""

    NONE = "none"  # there was none, or nobody vouches for it
    SAME = "same"  # as the present one
    APPLIED = "applied"
    DECLINED = "declined"  # the present one stays


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    manifest: Manifest | None  # None: a mere copy of the store was restored
    kept_in: Path | None  # where the present contents went; None: there were none
    names: tuple[str, ...]  # what was put in place
    open_sessions: tuple[SessionId, ...]  # had work in flight then, and take it up at the next start
    outgoing: int  # messages that were to be said then, and will be
    problems: tuple[str, ...] = ()  # that the store had already when it was copied
    config: ConfigFate = ConfigFate.NONE
    untrusted: bool = False


def restore(
    home: Home,
    source: Path,
    *,
    check: Callable[[Path], list[str]],
    progress: Progress,
    wants_config: Callable[[list[str]], bool] = lambda _diff: False,
    untrusted: bool = False,
) -> Restored:
    """For a home that this process has locked. Raises BackupError, and then nothing was changed.

    `wants_config` is shown how the configuration would change, as a diff, and says whether it is to.
    """
    if running := LinuxProcessHost(home.data_dir / PROCESSES).running():
        raise LiveProcessesError(running)
    part = home.data_dir / _PART
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(mode=0o700)
    try:
        manifest = _fetch(home, source, part, progress, untrusted=untrusted)
        progress("checking the store", 0, 0)
        if untrusted:
            _without_state(part / "work")
        open_sessions, outgoing = _bring_up_to_date(part / STORE, untrusted=untrusted)
        problems = check(part / STORE)
        if strange := [each for each in problems if manifest is None or each not in manifest.problems]:
            raise BackupError(f"the store in {source} is not sound ({strange[0]}); nothing was changed")
        places = _places(home, untrusted=untrusted) if manifest is not None else {STORE: home.store_dir}
        config = _decide_config(home, part, places, wants_config)
        give_all(part, like=home.data_dir, items=manifest.files if manifest else ())
        kept_in, names = _exchange(home, part, places)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    progress("checking what is in place now", 0, 0)
    wrong = [each for each in check(home.store_dir) if each not in problems]
    give_all(home.store_dir, like=home.data_dir)  # the check makes a lock file
    if wrong:
        raise BackupError(f"the restored store is not sound ({wrong[0]}); what was there before is in {kept_in}")
    return Restored(
        manifest=manifest,
        kept_in=kept_in,
        names=names,
        open_sessions=open_sessions,
        outgoing=outgoing,
        problems=tuple(problems),
        config=config,
        untrusted=untrusted,
    )


def _fetch(home: Home, source: Path, part: Path, progress: Progress, *, untrusted: bool) -> Manifest | None:
    if not source.is_dir():
        manifest = unpack(source, part, progress, key=find_key(home), untrusted=untrusted)
        if not (part / STORE / DATA_FILE).is_file():
            raise BackupError(f"{source} holds no store; nothing was changed")
        return manifest
    if not (source / DATA_FILE).is_file():
        raise BackupError(f"{source} is neither an archive made by `hermes backup` nor a copy of a store")
    if not untrusted:
        raise UnsealedError(Seal.MISSING)
    progress("copying the store", 0, 0)
    copy_store(source, part / STORE)
    return None


def _bring_up_to_date(store: Path, *, untrusted: bool) -> tuple[tuple[SessionId, ...], int]:
    """An older one is migrated here, where a failure costs nothing. What the next start will go on with."""
    engine = LmdbEngine.open(store)
    try:
        if untrusted:
            drop_authority(engine, time.time())
        return tuple(engine.pending()), len(engine.outbox())
    finally:
        engine.close()


def _without_state(work: Path) -> None:
    """Of each conversation only its files and long outputs stay: the rest says where and with what commands run."""
    for folder in work.iterdir() if work.is_dir() else ():
        for each in folder.iterdir() if folder.is_dir() and not folder.is_symlink() else ():
            if each.name in _HARMLESS_IN_WORK and each.is_dir() and not each.is_symlink():
                continue
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each)
            else:
                each.unlink()


def _decide_config(
    home: Home, part: Path, places: dict[str, Path], wants_config: Callable[[list[str]], bool]
) -> ConfigFate:
    """Leaves the configuration out of the places if the present one is to stay."""
    if CONFIG not in places or not (part / CONFIG).is_file():
        places.pop(CONFIG, None)
        return ConfigFate.NONE
    present, brought = _lines(home.config_file), _lines(part / CONFIG)
    diff = list(unified_diff(present, brought, "present configuration", "configuration in the backup", lineterm=""))
    if diff and wants_config(diff):
        return ConfigFate.APPLIED
    del places[CONFIG]
    return ConfigFate.DECLINED if diff else ConfigFate.SAME


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []


def _exchange(home: Home, part: Path, places: dict[str, Path]) -> tuple[Path | None, tuple[str, ...]]:
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


def _places(home: Home, *, untrusted: bool) -> dict[str, Path]:
    """Where each part of a backup belongs, the store first."""
    if untrusted:
        return {STORE: home.store_dir, **{name: home.data_dir / name for name in _HARMLESS}}
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
