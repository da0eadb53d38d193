"""Restore of a backup: it replaces the contents of a home.

The backup is first unpacked, checked and migrated beside the present contents. Then these are moved aside; they are
never deleted. The store is moved away first and put in place last. After an interruption the home has the old store,
the new one, or none; without a store no daemon starts, and the same command can be repeated.

The configuration of the backup is used only on request. From an untrusted backup only conversations and their files
are restored, without authority (distrust.py).
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from difflib import unified_diff
from enum import StrEnum
from pathlib import Path
from typing import Final

from hermes.config.home import Home, note_store
from hermes.domain.ids import SessionId
from hermes.domain.values import dataclass
from hermes.processes.host import LinuxProcessHost
from hermes.storage.copies import copy_store
from hermes.storage.env import DATA_FILE
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.system.durable_file import sync_directory
from hermes.upkeep.backup import CONFIG, KEPT, KEY, PROCESSES, STORE
from hermes.upkeep.backup_manifest import ArchiveEntry, BackupError, Manifest
from hermes.upkeep.distrust import drop_authority
from hermes.upkeep.seal import Seal, find_key
from hermes.upkeep.store_archive import Progress, UnsealedError, unpack

_PART: Final = "restore.part"
_INDEX: Final = "index"  # rebuilt from the store
_HARMLESS: Final = ("work", "media")  # restored from an untrusted backup, besides the store
_HARMLESS_IN_WORK = ("files", "outputs")


class LiveProcessesError(BackupError):
    """Background processes of the home still run. Nothing was changed."""

    exit_code = 75

    def __init__(self, pids: Mapping[str, int]) -> None:
        names = ", ".join(f"{name} (pid {pid})" for name, pid in pids.items())
        numbers = " ".join(str(pid) for pid in pids.values())
        super().__init__(
            f"background processes of this home still run: {names}. A restored store does not know them. "
            f"Nothing was changed; end them with `kill {numbers}`, then restore again"
        )
        self.pids = dict(pids)


class ConfigFate(StrEnum):
    """Use of the configuration in the backup."""

    NONE = "none"  # there was none, or the backup is untrusted
    SAME = "same"  # equal to the present one
    APPLIED = "applied"
    DECLINED = "declined"  # the present one is kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    manifest: Manifest | None  # None for a copy of a store
    kept_in: Path | None  # the old contents; None if there were none
    names: tuple[str, ...]  # restored parts
    open_sessions: tuple[SessionId, ...]  # with open work, resumed at the next start
    outgoing: int  # undelivered messages, sent at the next start
    problems: tuple[str, ...] = ()  # that the store had when it was backed up
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
    """Restore into a home that this process has locked. Raises BackupError, and then nothing was changed.

    `wants_config` gets the diff of the configuration, and returns whether to use the one in the backup.
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
            _drop_state(part / "work")
        open_sessions, outgoing = _bring_up_to_date(part / STORE, untrusted=untrusted)
        problems = check(part / STORE)
        if strange := [each for each in problems if manifest is None or each not in manifest.problems]:
            raise BackupError(f"the store in {source} is damaged ({strange[0]}); nothing was changed")
        places = _places(home, untrusted=untrusted) if manifest is not None else {STORE: home.store_dir}
        config = _decide_config(home, part, places, wants_config)
        _give_all(part, like=home.data_dir, items=manifest.files if manifest else ())
        kept_in, names = _exchange(home, part, places)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    progress("checking the restored store", 0, 0)
    wrong = [each for each in check(home.store_dir) if each not in problems]
    _give_all(home.store_dir, like=home.data_dir)  # the check creates a lock file
    if wrong:
        raise BackupError(f"the restored store is damaged ({wrong[0]}); the old contents are in {kept_in}")
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
    """Migrate the store before it is put in place. Return its sessions with open work, and undelivered messages."""
    engine = LmdbEngine.open(store)
    try:
        if untrusted:
            drop_authority(engine, time.time())
        return tuple(engine.pending()), len(engine.outbox())
    finally:
        engine.close()


def _drop_state(work: Path) -> None:
    """Keep only files and outputs of each conversation: the rest controls where and how commands run."""
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
    """Remove the configuration from `places` if the present one is kept."""
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
        places.pop(KEY, None)  # the present key stays valid
    aside = _new_directory(home.data_dir, time.time())
    for name, place in places.items():
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()
        elif place.exists():
            _move(place, aside / name)
    shutil.rmtree(home.data_dir / _INDEX, ignore_errors=True)
    brought = [name for name in reversed(places) if (part / name).exists()]
    for name in brought:  # the store last
        places[name].parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _move(part / name, places[name])
    note_store(home)
    sync_directory(home.data_dir)
    if not any(aside.iterdir()):
        aside.rmdir()
        return None, tuple(brought)
    return aside, tuple(brought)


def _places(home: Home, *, untrusted: bool) -> dict[str, Path]:
    """Return the target of each part of a backup, the store first."""
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
        except FileExistsError:  # another restore in the same second
            continue
        return aside
    raise BackupError(f"{home} holds too many before-restore directories; remove some")


def _move(source: Path, target: Path) -> None:
    """Move, also across disks: the configuration may be on another one."""
    shutil.move(source, target)
    sync_directory(target.parent)


def _give_all(root: Path, *, like: Path, items: Iterable[ArchiveEntry] = ()) -> None:
    """Give everything below `root` to the owner of `like`, except items with an owner of their own. Only as root.

    If the daemon runs as root, the files of a conversation belong to the user of its sandbox, whose tools could not
    change files of root.
    """
    if os.geteuid() != 0:
        return
    owner = like.stat()
    if owner.st_uid != 0:
        _give(root, owner.st_uid, owner.st_gid)
        for folder, directories, files in os.walk(root):
            for name in (*directories, *files):
                _give(Path(folder, name), owner.st_uid, owner.st_gid)
    for item in items:
        if item.uid is not None and os.path.lexists(root / item.path):  # some of it may have been dropped
            _give(root / item.path, item.uid, -1 if item.gid is None else item.gid)


def _give(path: Path, uid: int, gid: int) -> None:
    os.chown(path, uid, gid, follow_symlinks=False)
