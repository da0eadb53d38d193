"""Division of the daemon's delegated control group (cgroup v2) among its sandboxes.

A group that passes controllers on must not have processes itself. So the daemon moves into the leaf `daemon`, and the
groups of sandboxes are siblings of it.

systemd starts a service's main process in the service's own group. The kernel refuses that (EBUSY) while controllers
are passed on and a process of the last run is left. So a service whose background processes outlive it
(`processes.keep_on_stop`) has no such groups.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

from loguru import logger

from hermes.sandbox.cgroup import Cgroups, GroupLimits, Tree

LEAF: Final = "daemon"
_NEEDED: Final = frozenset({"memory", "pids"})
_OPTIONAL: Final = frozenset({"cpu"})
_ROUNDS: Final = 5  # a process may fork while it is being moved


class CgroupRefusal(StrEnum):
    """Reason why control groups are not available."""

    NOT_UNIFIED = "not_unified"  # no cgroup v2 here
    OUTLIVED = "outlived"  # a systemd service whose background processes stay
    NOT_DELEGATED = "not_delegated"
    NO_CONTROLLERS = "no_controllers"
    SHARED = "shared"  # others are in the daemon's group
    FAILED = "failed"


def base_of(membership: str, root: Path) -> Path | None:
    """Return the group to divide, from the text of /proc/self/cgroup. Pure."""
    path = next((line[3:] for line in membership.splitlines() if line.startswith("0::/")), None)
    if path is None or "/.." in path:  # v1 only; or outside of this cgroup namespace
        return None
    own = root / path.lstrip("/")
    return own.parent if own.name == LEAF else own


def open_cgroups(
    limits: GroupLimits,
    *,
    membership: str,
    ours: Callable[[], Collection[int]],
    outlived: bool,
    new_id: Callable[[], str],
    root: Path = Path("/sys/fs/cgroup"),
    tree: Tree | None = None,
) -> Cgroups | CgroupRefusal:
    """Move the daemon into its leaf and pass the controllers on. `ours` are the daemon's pid and those below it."""
    tree = tree or Tree()
    base = base_of(membership, root)
    if base is None or not (base / "cgroup.controllers").exists():
        return CgroupRefusal.NOT_UNIFIED
    if outlived and base.name.endswith(".service"):
        return CgroupRefusal.OUTLIVED
    if not all(os.access(base / name, os.W_OK) for name in ("", "cgroup.procs", "cgroup.subtree_control")):
        return CgroupRefusal.NOT_DELEGATED
    try:
        available = frozenset((base / "cgroup.controllers").read_text().split())
        if not available >= _NEEDED:
            return CgroupRefusal.NO_CONTROLLERS
        if not _emptied(base, ours, tree):
            return CgroupRefusal.SHARED
        wanted = sorted(available & (_NEEDED | _OPTIONAL))
        tree.write(base / "cgroup.subtree_control", " ".join(f"+{name}" for name in wanted))
    except OSError as error:
        logger.warning("sandbox: could not divide the control group {}: {}", base, error)
        return CgroupRefusal.FAILED
    return Cgroups(base, limits, new_id=new_id, tree=tree)


def _emptied(base: Path, ours: Callable[[], Collection[int]], tree: Tree) -> bool:
    """Move our processes into the leaf. Return False if others are in the group, or ours do not stop forking."""
    for _ in range(_ROUNDS):
        inside = {int(pid) for pid in (base / "cgroup.procs").read_text().split()}
        if not inside:
            return True
        if not inside <= set(ours()):
            return False
        (base / LEAF).mkdir(exist_ok=True)
        for pid in inside:
            with suppress(ProcessLookupError):
                tree.write(base / LEAF / "cgroup.procs", str(pid))
    return False
