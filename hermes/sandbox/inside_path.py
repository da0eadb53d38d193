"""Paths of a sandbox, resolved from outside as the sandbox itself would resolve them.

Commands make symbolic links. A link followed outside would reveal whether a hidden path exists.
"""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack
from posixpath import dirname
from typing import Final

from hermes.sandbox.sandbox_plan import SandboxPlan

_LINKS_MAX: Final = 40  # as the kernel's
_OPEN: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC


def is_directory_inside(path: str, plan: SandboxPlan) -> bool:
    """Return whether an absolute path is a directory for the programs in the sandbox. Blocking."""
    waiting = _parts(path)
    at, links = "/", 0
    while waiting and links <= _LINKS_MAX:
        name = waiting.pop()
        here = dirname(at) if name == ".." else f"{at.rstrip('/')}/{name}"
        try:
            target = None if name == ".." else plan.links.get(here) or _link_target(here, plan)
        except (OSError, ValueError):  # ValueError: a null character
            return False
        if target is None:
            at = here
        else:
            links += 1
            at = "/" if target.startswith("/") else at
            waiting += _parts(target)
    return not waiting


def _parts(path: str) -> list[str]:
    """Return the parts of a path, last one first."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _link_target(path: str, plan: SandboxPlan) -> str | None:
    """Return the target of a link, None for a directory. Raises OSError for anything else.

    No link is followed below a mount: a command may swap a directory for one at any time.
    """
    if any(each.target.startswith(f"{path}/") for each in (*plan.mounts, *plan.own)):
        return None  # bubblewrap makes the directories above a mount
    mount = plan.mount_of(path)
    if mount is None:
        raise FileNotFoundError(path)
    with ExitStack() as held:
        descriptor = _opened(mount.source, None, held, follow=mount not in plan.own)
        for part in _parts(path[len(mount.target) :])[::-1]:
            descriptor = _opened(part, descriptor, held)
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISLNK(mode):
            return os.readlink("", dir_fd=descriptor)
    if not stat.S_ISDIR(mode):
        raise NotADirectoryError(path)
    return None


def _opened(name: str, directory: int | None, held: ExitStack, *, follow: bool = False) -> int:
    descriptor = os.open(name, _OPEN if follow else _OPEN | os.O_NOFOLLOW, dir_fd=directory)
    held.callback(os.close, descriptor)
    return descriptor
