"""From a plan to bubblewrap's options. Pure."""

from __future__ import annotations

from typing import Final

from hermes.sandbox.plan import Identity, Plan

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


def options(plan: Plan, *, terminal: bool = False, seccomp_fd: int | None = None) -> list[str]:
    """The options for this plan. With a terminal the program keeps the session, for job control."""
    chosen = [*_NAMESPACES, *(() if terminal else ("--new-session",))]
    if plan.identity is Identity.ROOT:
        chosen += ["--cap-drop", "ALL"]
    for link, target in plan.links.items():
        chosen += ["--symlink", target, link]
    chosen += _SKELETON
    if plan.identity is Identity.ROOT:
        chosen += ["--ro-bind", "/proc/sys", "/proc/sys"]  # root's files, capabilities or not
    if not any(mount.target == "/tmp" for mount in plan.mounts):  # noqa: S108 - the sandbox's own
        chosen += ["--dir", "/tmp"]  # noqa: S108
    chosen += ["--symlink", "../tmp", "/var/tmp"]  # noqa: S108
    for mount in plan.mounts:
        chosen += ["--bind" if mount.writable else "--ro-bind", mount.source, mount.target]
    for path in plan.masked_directories:
        chosen += ["--tmpfs", path, "--remount-ro", path]
    for path in plan.masked_files:
        chosen += ["--ro-bind", "/dev/null", path]
    chosen += ["--remount-ro", "/", "--chdir", plan.cwd]
    if seccomp_fd is not None:
        chosen += ["--seccomp", str(seccomp_fd)]
    return chosen
