"""Backup of a home into one archive with checksums.

It holds a consistent copy of the store, the configuration, SOUL.md, memories, skills, the folders of conversations
and the records of background processes. The search index, logs and secrets are left out, and the manifest lists them.
The files are staged inside the home, which is private. The archive gets an HMAC by a key of the home (seal.py), and
its name when it is complete.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from hermes import __version__
from hermes.config.home import Home
from hermes.storage.env import DATA_FILE
from hermes.upkeep.backup_manifest import ArchiveEntry, BackupError, LeftOut, LeftOutReason, Manifest
from hermes.upkeep.seal import make_key
from hermes.upkeep.store_archive import SUFFIXES, Progress, pack, with_checksums
from hermes.upkeep.tree_copy import TreeCopy

STORE: Final = "store"
CONFIG: Final = "config.yaml"
KEY: Final = "api.key"
PROCESSES: Final = "processes"
_BENCH: Final = "backup.part"
KEPT: Final = (
    "SOUL.md",
    "memories",
    "skills",
    "work",
    PROCESSES,
    "media",
    "chat_history.jsonl",
    "chat_preferences.json",
)  # besides the store, the configuration and, on request, the key
_NEVER_IN: Final = {  # by pattern; the first match wins
    "admin.token": LeftOutReason.RUNTIME,
    "auth.*": LeftOutReason.RUNTIME,
    "*.key": LeftOutReason.SECRET,
    "*.token": LeftOutReason.SECRET,
    "service.env": LeftOutReason.SECRET,
    "trusted_*.json": LeftOutReason.TRUST,
    "logs": LeftOutReason.LOG,
    "index": LeftOutReason.REBUILT,
    "before-restore-*": LeftOutReason.EARLIER,
    "store/format-*": LeftOutReason.EARLIER,
    "store/*": LeftOutReason.RUNTIME,
    "hermes.*": LeftOutReason.RUNTIME,
    ".hermes-home*": LeftOutReason.RUNTIME,
    "refused.json*": LeftOutReason.RUNTIME,
    "restore.part": LeftOutReason.RUNTIME,
}


def default_name(now: float) -> str:
    return f"hermes-backup-{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}.tar.gz"


def make_backup(
    home: Home,
    target: Path,
    *,
    copy_store: Callable[[Path], None],  # into a new directory
    check_store: Callable[[Path], list[str]],
    hot: bool,
    with_key: bool,
    progress: Progress,
) -> Manifest:
    _check_target(target)
    try:
        with _workbench(home) as bench:
            progress("copying the store", 0, 0)
            copy_store(bench / STORE)
            progress("checking the copy", 0, 0)
            problems = check_store(bench / STORE)
            (bench / STORE / "lock.mdb").unlink(missing_ok=True)
            key = make_key(home)  # before the list of left-out files, which includes it
            items, left_out = _gather(home, bench, with_key=with_key)
            manifest = Manifest(
                version=__version__,
                made_at=time.time(),
                home=str(home.data_dir),
                hot=hot,
                files=tuple(with_checksums(bench, items, progress)),
                problems=tuple(problems),
                left_out=tuple(left_out),
            )
            pack(bench, manifest, target, progress, key=key)
    except OSError as error:
        raise BackupError(f"the backup {target} could not be written: {error.strerror or error}") from error
    return manifest


def _check_target(target: Path) -> None:
    if target.exists():
        raise BackupError(f"{target} exists already; name a new file")
    if not target.name.endswith(SUFFIXES):
        raise BackupError(f"{target.name!r} must end in {' or '.join(SUFFIXES)}")
    if not target.parent.is_dir():
        raise BackupError(f"there is no directory {target.parent}")


@contextmanager
def _workbench(home: Home) -> Iterator[Path]:
    """Yield an empty staging directory, locked. Remains of an interrupted backup are removed."""
    bench = home.data_dir / _BENCH
    bench.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(bench, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise BackupError(f"another backup of {home.data_dir} is running; try again when it is done") from None
    try:
        for left in bench.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        yield bench
    finally:
        shutil.rmtree(bench, ignore_errors=True)
        os.close(descriptor)


# ---------------------------------------------------------------- contents


def _gather(home: Home, part: Path, *, with_key: bool) -> tuple[list[ArchiveEntry], list[LeftOut]]:
    """Copy the files, which may change meanwhile. Return the entries, and what is left out."""
    copy = TreeCopy(part, owner=home.data_dir.stat().st_uid)
    sources = {CONFIG: home.config_file, **{name: home.data_dir / name for name in KEPT}}
    if with_key:
        sources[KEY] = home.api_key_file
    for name, source in sources.items():
        copy.add(source, name)
    taken = {STORE, _BENCH, *(name for name, source in sources.items() if source.parent == home.data_dir)}
    present = sorted(entry.name for entry in home.data_dir.iterdir() if entry.name not in taken)
    beside = sorted(entry.name for entry in home.store_dir.iterdir() if entry.name != DATA_FILE)
    names = [*present, *(f"{STORE}/{name}" for name in beside)]
    left_out = [*copy.left_out, *(LeftOut(path=name, reason=why_left_out(name)) for name in names)]
    return [ArchiveEntry(path=f"{STORE}/{DATA_FILE}"), *copy.items], left_out


def why_left_out(name: str) -> LeftOutReason:
    """Return why a file of the home is never in a backup. Pure."""
    return next(
        (reason for pattern, reason in _NEVER_IN.items() if fnmatchcase(name, pattern)), LeftOutReason.UNKNOWN_NAME
    )
