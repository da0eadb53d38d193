"""Bubblewrap's options for a plan. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hermes.sandbox.sandbox_plan import Mount, SandboxIdentity, SandboxPlan

_NAMESPACES: Final = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--unshare-net",
    "--disable-userns",
    "--die-with-parent",
    "--hostname",
    "sandbox",
)
_SKELETON: Final = ("--proc", "/proc", "--dev", "/dev", "--dir", "/run", "--dir", "/var", "--dir", "/mnt")


def options(plan: SandboxPlan, *, terminal: bool = False, seccomp_fd: int | None = None) -> list[str]:
    """Return the options for this plan. With a terminal the program keeps the session, for job control."""
    chosen = [*_NAMESPACES, *(() if terminal else ("--new-session",))]
    if plan.identity is SandboxIdentity.ROOT:
        chosen += ["--cap-drop", "ALL"]
    for link, target in plan.links.items():
        chosen += ["--symlink", target, link]
    chosen += _SKELETON
    if plan.identity is SandboxIdentity.ROOT:
        chosen += ["--ro-bind", "/proc/sys", "/proc/sys"]  # these files belong to root, also without capabilities
    if not plan.own:
        chosen += ["--dir", "/tmp"]  # noqa: S108 - the sandbox's own
    chosen += ["--symlink", "../tmp", "/var/tmp"]  # noqa: S108
    chosen += _binds(plan.mounts)
    for path in plan.masked_directories:
        chosen += ["--tmpfs", path]
    for path in plan.masked_files:
        chosen += ["--ro-bind", "/dev/null", path]
    chosen += _binds(plan.own)
    for path in (*plan.masked_directories, "/"):  # after the own ones, whose places may be in them
        chosen += ["--remount-ro", path]
    chosen += ["--chdir", plan.cwd]
    if seccomp_fd is not None:
        chosen += ["--seccomp", str(seccomp_fd)]
    return chosen


def _binds(mounts: Iterable[Mount]) -> list[str]:
    found = []
    for mount in mounts:
        found += ["--bind" if mount.writable else "--ro-bind", mount.source, mount.target]
    return found
