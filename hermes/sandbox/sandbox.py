"""The daemon's sandbox: its probe result, and a box for each conversation.

All methods read the disk: call them in a thread. Facts about the machine are read once, at the start.
"""

from __future__ import annotations

import os
import platform
import pwd
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Final

import hermes
from hermes.domain.errors import ConfigError
from hermes.domain.process.sandbox_launch import Box, ToolUser
from hermes.domain.values import dataclass
from hermes.sandbox.box import boxed_line, make_box
from hermes.sandbox.cgroup import Cgroups
from hermes.sandbox.probe import PROOF, Cause, Probe, run_probe
from hermes.sandbox.sandbox_plan import (
    HOME,
    PROXY_PORT,
    BadWorkdirError,
    HostMachine,
    SandboxIdentity,
    SandboxPlan,
    SandboxRules,
    SessionPaths,
    git_entries,
    inspected_paths,
    make_plan,
    toolchain_variables,
)
from hermes.sandbox.seccomp import program

_KERNEL_FILES: Final = ("/proc/keys", "/proc/key-users")  # names of keys that belong to the user, or to root
_WORLD_READABLE: Final = stat.S_IROTH
_ETC_ENTRIES_MAX: Final = 5_000
_GIT_S: Final = 5.0
_GIT_IDENTITY: Final = {
    "user.name": ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"),
    "user.email": ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    probe: Probe
    rules: SandboxRules
    machine: HostMachine
    bwrap: str = ""
    seccomp: bytes = b""
    user: ToolUser | None = None  # set: the daemon is root
    cgroups: Cgroups | None = None  # limits of commands; None: only rlimits hold

    @property
    def works(self) -> bool:
        return self.probe.works

    def place(self, folder: Path, work: str, *, readable: Iterable[str] = ()) -> SessionPaths:
        """Create the conversation's directories, and read facts about its working directory."""
        is_own = Path(work).parent == folder
        if is_own:
            _own(Path(work), self.user)
        if os.path.realpath(work) != work:
            raise BadWorkdirError(f"{work} cannot be a working directory: its path contains a symbolic link")
        user = self.user if self._belongs_to_tools(work) else None
        for name in ("tmp", "home"):
            _own(folder / name, user)
        if user is not None:
            folder.chmod(0o711)  # the directories above it are private, and so is every other file in it
        git, git_file = _git_of(Path(work)), _is_git_file(Path(work, ".git"))
        return SessionPaths(
            work=work,
            tmp=str(folder / "tmp"),
            home=str(folder / "home"),
            readable=tuple(path for path in (str(folder / "outputs"), *readable) if Path(path).exists()),
            git=git,
            git_file=git_file,
            checks=_identities(Path(work), () if is_own else (".",), sorted(git), (".git",) if git_file else ()),
        )

    def identity(self, place: SessionPaths | None) -> SandboxIdentity:
        if self.user is None:
            return SandboxIdentity.SAME
        return (
            SandboxIdentity.DROPPED if place is None or self._belongs_to_tools(place.work) else SandboxIdentity.ROOT
        )

    def _belongs_to_tools(self, work: str) -> bool:
        return self.user is not None and Path(work).stat().st_uid == self.user.uid

    def plan(
        self, place: SessionPaths | None, *, cwd: str = "", network: bool = False, programs: Iterable[str] = ()
    ) -> SandboxPlan:
        return make_plan(
            self.machine,
            self.rules,
            place,
            identity=self.identity(place),
            cwd=cwd,
            network=network,
            programs=programs,
        )

    def box(self, plan: SandboxPlan, *, terminal: bool = False) -> Box:
        return make_box(
            plan,
            bwrap=self.bwrap,
            seccomp=self.seccomp,
            terminal=terminal,
            user=self.user,
            staged=self._staged(plan),
        )

    def worker_box(self) -> Box:
        """Return a box for our own worker: no working directory, no network."""
        return self.box(self.plan(None, programs=code_directories()))

    def environment(self, base: Mapping[str, str], *, network: bool) -> dict[str, str]:
        """Return the environment of a program inside, from the environment outside."""
        address = f"http://127.0.0.1:{PROXY_PORT}"
        proxies = (
            dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), address) if network else {}
        )
        local = {"NO_PROXY": "localhost,127.0.0.1,::1", "NODE_USE_ENV_PROXY": "1"} if network else {}
        known = {**toolchain_variables(self.machine), **self.machine.git_identity}
        return {**base, **known, "HOME": HOME, **proxies, **local}

    def _staged(self, plan: SandboxPlan) -> list[str]:
        if self.user is None or plan.identity is not SandboxIdentity.DROPPED:
            return []
        found = (_blocked_below(self.user, Path(mount.source)) for mount in (*plan.mounts, *plan.own))
        return [path for path in dict.fromkeys(found) if path]


def open_sandbox(rules: SandboxRules, *, home: str, enabled: bool, user_name: str = "") -> Sandbox:
    """Find bubblewrap and prove that a sandbox works. Raises ConfigError for an unknown user."""
    user = _tool_user(user_name) if enabled and sys.platform == "linux" and os.geteuid() == 0 else None
    machine = _machine(rules, home, user)
    nothing = Sandbox(probe=Probe(cause=Cause.OFF), rules=rules, machine=machine)
    if not enabled:
        return nothing
    if sys.platform != "linux":
        return Sandbox(probe=Probe(cause=Cause.NOT_LINUX), rules=rules, machine=machine)
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return Sandbox(probe=Probe(cause=Cause.NOT_INSTALLED), rules=rules, machine=machine)
    found = Sandbox(
        probe=Probe(cause=Cause.WORKS),
        rules=rules,
        machine=machine,
        bwrap=bwrap,
        seccomp=program(platform.machine(), debuggers=rules.debuggers) or b"",
        user=user,
    )
    return Sandbox(
        probe=_proved(found),
        rules=rules,
        machine=machine,
        bwrap=bwrap,
        seccomp=found.seccomp,
        user=found.user,
    )


def code_directories() -> tuple[str, ...]:
    """Return the directories of the interpreter and of our package, for workers written in Python."""
    places = (sys.base_prefix, sys.prefix, str(Path(hermes.__file__).parent))
    return tuple(dict.fromkeys(path for path in places if not path.startswith("/usr/") and path != "/usr"))


def _own(path: Path, user: ToolUser | None) -> None:
    """Create a directory that the conversation's tools may write. Only root can give it to another user."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    uid, gid = (os.geteuid(), os.getegid()) if user is None else (user.uid, user.gid)
    if path.lstat().st_uid != uid:
        os.chown(path, uid, gid, follow_symlinks=False)


def _proved(sandbox: Sandbox) -> Probe:
    box = sandbox.box(sandbox.plan(None))
    with ExitStack() as held:
        return run_probe(*boxed_line(box, ("/bin/sh", "-c", PROOF), held))


def _tool_user(name: str) -> ToolUser:
    try:
        found = pwd.getpwuid(int(name)) if name.isdigit() else pwd.getpwnam(name or "nobody")
    except KeyError:
        raise ConfigError(f"sandbox.user: user {name or 'nobody'!r} does not exist on this machine") from None
    if found.pw_uid == 0:
        raise ConfigError("sandbox.user: tools must not run as root; name another user")
    return ToolUser(uid=found.pw_uid, gid=found.pw_gid)


def _machine(rules: SandboxRules, home: str, user: ToolUser | None) -> HostMachine:
    links = {
        str(path): str(path.readlink()) for path in map(Path, inspected_paths(rules, home)[:6]) if path.is_symlink()
    }
    unreadable = _unreadable_in_etc() if hasattr(os, "geteuid") and os.geteuid() == 0 else ()
    return HostMachine(
        directories=frozenset(path for path in (*inspected_paths(rules, home), *unreadable) if Path(path).is_dir()),
        links=links,
        home=home,
        unreadable=unreadable,
        closed=frozenset() if user is None else _closed(user, rules.secret_paths),
        kernel_files=tuple(path for path in _KERNEL_FILES if Path(path).exists()),
        git_identity=_git_identity(),
    )


def _git_identity() -> dict[str, str]:
    """Return variables with the owner's commit name: ~/.gitconfig is not visible inside."""
    found: dict[str, str] = {}
    for key, variables in _GIT_IDENTITY.items():
        try:
            done = subprocess.run(  # noqa: S603 - fixed arguments
                ("git", "config", "--global", "--get", key),  # noqa: S607 - found in PATH, as in the owner's shell
                capture_output=True,
                text=True,
                timeout=_GIT_S,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return {}
        if value := done.stdout.strip():
            found |= dict.fromkeys(variables, value)
    return found


@cache
def _unreadable_in_etc() -> tuple[str, ...]:
    """Return the paths that only root may read; they are masked for root without capabilities."""
    found: list[str] = []
    seen = 0
    for directory, names, files in os.walk("/etc"):
        for name in (*names, *files):
            path = Path(directory, name)
            seen += 1
            if seen > _ETC_ENTRIES_MAX:
                return tuple(found)
            if not path.is_symlink() and not path.stat().st_mode & _WORLD_READABLE:
                found.append(str(path))
                if name in names:
                    names.remove(name)
    return tuple(found)


def _git_of(work: Path) -> frozenset[str]:
    if (work / ".git").is_symlink() or not (work / ".git").is_dir():
        return frozenset()
    _make_pinned(work / ".git")
    return frozenset(name for name in git_entries() if (work / name).exists() and not (work / name).is_symlink())


def _identities(work: Path, *names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return device and inode of each path to mount: bubblewrap would follow a link that replaces one."""
    found = []
    for name in dict.fromkeys(each for some in names for each in some):
        path = work if name == "." else work / name
        status = path.lstat()
        found.append((str(path), f"{status.st_dev}:{status.st_ino}"))
    return tuple(found)


def _make_pinned(git: Path) -> None:
    """Create the entries that a command could otherwise create: only what exists can be read-only.

    `commondir` names the directory with the configuration and the hooks; "." is the repository itself, as without the
    file. It is not made for reftable, where git would take the lock of its references twice.
    Commands of this conversation may run now, so no link is followed.
    """
    with suppress(OSError), ExitStack() as held:  # not a directory that we may write
        descriptor = os.open(git, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        held.callback(os.close, descriptor)
        with suppress(OSError):  # it exists
            os.mkdir("hooks", mode=0o755, dir_fd=descriptor)
        if not (git / "reftable").exists():
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            file = os.open("commondir", flags, mode=0o644, dir_fd=descriptor)
            held.callback(os.close, file)
            os.write(file, b".\n")


def _is_git_file(path: Path) -> bool:
    """Return whether `.git` is a file that names another repository, as in a worktree or a submodule."""
    return path.is_file() and not path.is_symlink()


def _closed(user: ToolUser, paths: Iterable[str]) -> frozenset[str]:
    parents = {parent for path in paths for parent in Path(path).parents}
    return frozenset(str(parent) for parent in parents if parent.exists() and not _may_enter(user, parent))


def _may_enter(user: ToolUser, directory: Path) -> bool:
    status = directory.stat()
    shift = 6 if status.st_uid == user.uid else 3 if status.st_gid == user.gid else 0
    return bool(status.st_mode >> shift & 0o1)


def _blocked_below(user: ToolUser, path: Path) -> str:
    """Return the path right below the deepest directory that this user cannot enter; empty if there is none."""
    below = path
    for parent in path.parents:  # deepest first
        if not _may_enter(user, parent):
            return str(below)
        below = parent
    return ""
