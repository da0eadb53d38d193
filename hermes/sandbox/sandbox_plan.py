"""Plan of a sandbox: what a program sees, what it may write, and its user. Pure.

A plan is decided before anything starts, from facts about the machine and the conversation. Later mounts win: first
the system and what the owner opened, then masks over every secret that these would show, then the conversation's own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Final

from hermes.domain.errors import HermesError
from hermes.domain.values import dataclass

HOME: Final = "/home/agent"
TMP: Final = "/tmp"  # noqa: S108 - the sandbox's own
PROXY_PORT: Final = 3128

# Version managers keep compilers and interpreters in the home directory. Their places are readable, with the variable
# that tells the tool where it is. Places that hold credentials are left out.
TOOLCHAINS: Final[Mapping[str, str]] = {
    ".asdf": "ASDF_DATA_DIR",
    ".bun/bin": "",
    ".cargo/bin": "",
    ".deno/bin": "",
    ".local/bin": "",
    ".local/share/mise": "MISE_DATA_DIR",
    ".local/share/pipx": "",
    ".local/share/uv/python": "UV_PYTHON_INSTALL_DIR",
    ".local/share/uv/tools": "",
    ".nvm": "NVM_DIR",
    ".pyenv": "PYENV_ROOT",
    ".rbenv": "RBENV_ROOT",
    ".rustup": "RUSTUP_HOME",
    ".sdkman": "SDKMAN_DIR",
    ".volta": "VOLTA_HOME",
    "go/bin": "",
}
_SYSTEM: Final = ("/usr", "/etc")
_SYSTEM_LINKS: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SYSTEM_OPTIONAL: Final = ("/opt", "/nix", "/gnu", "/snap", "/home/linuxbrew")
_GIT_READ_ONLY: Final = ("hooks", "commondir", "config", "config.worktree", "info/attributes")


class BadWorkdirError(HermesError):
    """The working directory would expose too much to the sandbox."""

    code = "bad_workdir"


def hides_own(path: str) -> str | None:
    """Return the place of every sandbox that this directory would cover, if it were mounted; else None."""
    return next((each for each in (HOME, "/proc", "/dev") if _within(each, path)), None)


class SandboxIdentity(StrEnum):
    """User of the sandboxed program, as seen from outside."""

    SAME = "same"  # the daemon's own user, who is not root
    DROPPED = "dropped"  # the daemon is root; tools run as another user
    ROOT = "root"  # root without capabilities, for a working directory that only root can use


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    source: str
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HostMachine:
    """Facts about this machine, read once."""

    directories: frozenset[str]  # of those the plan may use, the ones that exist
    links: Mapping[str, str]  # symbolic links at the root, such as /bin: usr/bin
    home: str  # the daemon's user's
    unreadable: tuple[str, ...] = ()  # below /etc, what ordinary users may not read
    closed: frozenset[str] = frozenset()  # directories above secret paths that the tools' user cannot enter
    kernel_files: tuple[str, ...] = ()  # of /proc, those that show what belongs to others
    git_identity: Mapping[str, str] = field(
        default_factory=dict
    )  # variables: the owner's name and address in commits


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxRules:
    """The owner's settings."""

    read_paths: tuple[str, ...] = ()
    write_paths: tuple[str, ...] = ()
    secret_paths: tuple[str, ...] = ()  # Hermes' own directories and every file with a key
    git_config_writable: bool = False
    debuggers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPaths:
    """Paths of one conversation: its working directory and its private directories."""

    work: str
    tmp: str
    home: str
    readable: tuple[str, ...] = ()  # its long outputs, files that people sent
    checks: tuple[tuple[str, str], ...] = ()  # paths below `work`, and the device and inode that each had
    git: frozenset[str] = frozenset()  # of `work`: ".git" and those entries below it that exist
    git_file: bool = False  # `.git` is a file that names a repository elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPlan:
    mounts: tuple[Mount, ...]
    links: Mapping[str, str]
    masked_directories: tuple[str, ...] = ()
    masked_files: tuple[str, ...] = ()
    checks: tuple[tuple[str, str], ...] = ()  # path, device:inode: must still match once the sandbox is made
    own: tuple[Mount, ...] = ()  # the conversation's, on top of the masks
    cwd: str = "/"
    identity: SandboxIdentity = SandboxIdentity.SAME
    network: bool = False  # whether a proxy listens on its loopback
    debuggers: bool = False

    def sees(self, path: str) -> bool:
        return self.mount_of(path) is not None

    def may_write(self, path: str) -> bool:
        mount = self.mount_of(path)
        return mount is not None and mount.writable

    def outside(self, path: str) -> str | None:
        """Return the host path of a path in the sandbox; None if no mount shows it."""
        mount = self.mount_of(path)
        return None if mount is None else mount.source + path.rstrip("/")[len(mount.target) :]

    def mount_of(self, path: str) -> Mount | None:
        """Return the mount that shows a path: the last one that contains it."""
        if own := [mount for mount in self.own if _within(path, mount.target)]:
            return own[-1]
        if any(_within(path, each) for each in (*self.masked_directories, *self.masked_files)):
            return None
        return next((mount for mount in reversed(self.mounts) if _within(path, mount.target)), None)


def make_plan(
    machine: HostMachine,
    rules: SandboxRules,
    place: SessionPaths | None = None,
    *,
    identity: SandboxIdentity = SandboxIdentity.SAME,
    cwd: str = "",
    network: bool = False,
    programs: Iterable[str] = (),
) -> SandboxPlan:
    """Return the plan of a sandbox. Without `place` it is for a worker that needs no files.

    `programs` are directories with the worker's code.
    """
    if place is not None:
        check_workdir(place.work, machine.home, rules.secret_paths, own=str(PurePosixPath(place.tmp).parent))
    mounts = [
        *(_read(path) for path in _SYSTEM),
        *(_read(path) for path in _SYSTEM_LINKS if path in machine.directories and path not in machine.links),
    ]
    if place is not None:
        mounts += [
            *(_read(path) for path in _SYSTEM_OPTIONAL if path in machine.directories),
            *(_read(path) for path in toolchains(machine)),
            Mount(source=place.tmp, target=TMP, writable=True),  # before the owner's paths, which may be below it
            Mount(source=place.home, target=HOME, writable=True),
            *(_read(path) for path in rules.read_paths),
            *(_write(path) for path in rules.write_paths),
        ]
    mounts += [_read(path) for path in programs]  # last: these may be below /tmp as well
    unreadable = machine.unreadable if identity is SandboxIdentity.ROOT else ()
    closed = machine.closed if identity is SandboxIdentity.DROPPED else frozenset()
    masks = (*unreadable, *machine.kernel_files, *_masks(mounts, rules.secret_paths, closed))
    directories = machine.directories | closed
    return SandboxPlan(
        mounts=tuple(mounts),
        links=machine.links,
        masked_directories=tuple(path for path in masks if path in directories),
        masked_files=tuple(path for path in masks if path not in directories),
        checks=() if place is None else place.checks,
        own=() if place is None else _own(place, git_config_writable=rules.git_config_writable),
        cwd=cwd or (place.work if place is not None else "/"),
        identity=identity,
        network=network,
        debuggers=rules.debuggers,
    )


def _own(place: SessionPaths, *, git_config_writable: bool) -> tuple[Mount, ...]:
    return (
        *(_read(path) for path in place.readable),
        _write(place.work),
        *_git(place, writable_config=git_config_writable),
    )


def check_workdir(work: str, home: str, secret_paths: Collection[str], *, own: str = "") -> None:
    """Refuse a directory that holds the home directory, or that holds or lies in one of Hermes' own.

    `own` is the conversation's folder in Hermes' data directory, and the one exception: nothing above it is visible.
    """
    if not work.startswith("/"):
        raise BadWorkdirError(f"the working directory {work!r} must be an absolute path")
    if _within(home, work):
        raise BadWorkdirError(f"{work} cannot be a working directory: it contains the home directory {home}")
    for secret in secret_paths:
        if _within(secret, work):
            raise BadWorkdirError(f"{work} cannot be a working directory: it contains {secret}")
        if _within(work, secret) and not (own and _within(work, own)):
            raise BadWorkdirError(f"{work} cannot be a working directory: it is in {secret}")


def toolchains(machine: HostMachine) -> list[str]:
    return [path for name in TOOLCHAINS if (path := f"{machine.home}/{name}") in machine.directories]


def toolchain_variables(machine: HostMachine) -> dict[str, str]:
    """Return variables that point version managers to their directories, because HOME differs inside."""
    found = {TOOLCHAINS[name]: f"{machine.home}/{name}" for name in TOOLCHAINS if TOOLCHAINS[name]}
    return {variable: path for variable, path in found.items() if path in machine.directories}


def inspected_paths(rules: SandboxRules, home: str) -> tuple[str, ...]:
    """Return all paths of which a plan must know whether they are directories."""
    return (
        *_SYSTEM_LINKS,
        *_SYSTEM_OPTIONAL,
        *(f"{home}/{name}" for name in TOOLCHAINS),
        *rules.secret_paths,
    )


def git_entries() -> tuple[str, ...]:
    return (".git", *(f".git/{name}" for name in _GIT_READ_ONLY))


def _git(place: SessionPaths, *, writable_config: bool) -> list[Mount]:
    """Pin `.git`: a mount point cannot be renamed, so its read-only entries cannot be moved away."""
    if place.git_file:
        return [_read(f"{place.work}/.git")]
    if ".git" not in place.git:
        return []
    fixed = [name for name in _GIT_READ_ONLY if f".git/{name}" in place.git]
    if writable_config:
        fixed = [name for name in fixed if not name.startswith("config")]
    return [_write(f"{place.work}/.git"), *(_read(f"{place.work}/.git/{name}") for name in fixed)]


def _masks(mounts: Iterable[Mount], secret_paths: Iterable[str], closed: Collection[str]) -> list[str]:
    """Return the secret paths that a mount would show. The conversation's own /tmp and home hold other files.

    Nothing can be masked in a directory that the tools' user cannot enter. Then the directory itself is masked.
    """
    targets = [mount.target for mount in mounts if mount.target == mount.source]
    found = [
        next((each for each in _between(target, secret) if each in closed), secret)
        for secret in secret_paths
        for target in targets
        if _within(secret, target)
    ]
    return list(dict.fromkeys(found))


def _between(directory: str, path: str) -> list[str]:
    """Return the directories between the first and the second path, from the top."""
    return [str(each) for each in reversed(PurePosixPath(path).parents) if _within(str(each), directory)][1:]


def _read(path: str) -> Mount:
    return Mount(source=path, target=path)


def _write(path: str) -> Mount:
    return Mount(source=path, target=path, writable=True)


def _within(path: str, directory: str) -> bool:
    return PurePosixPath(path).is_relative_to(directory)
