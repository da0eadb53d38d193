"""Owners of restored files.

A restore by root makes files of root. In the home of a daemon that runs as root, the files of a conversation belong
to the user of its sandbox. As files of root, its tools could not change them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from hermes.upkeep.manifest import ArchiveEntry


def give_all(root: Path, *, like: Path, items: Iterable[ArchiveEntry] = ()) -> None:
    """Give everything below `root` to the owner of `like`, except items with an owner of their own. Only as root."""
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
