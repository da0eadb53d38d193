"""Workspace: the part of the file system that a conversation may change without approval."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

from hermes.shell_policy.bash.syntax import ANY_DEPTH, UNKNOWN
from hermes.shell_policy.protected_path import LookupContext, absolute, no_links

_SCRATCH = re.compile(
    r"(?:/private)?(?:/var)?/tmp(?:/|\Z)|(?:/private)?/var/folders/"
    r"|/dev/(?:null|zero|full|tty|stdin|stdout|stderr|fd(?:/\d+)?|shm(?:/.*)?)\Z"
)
_ESCAPES = re.compile(rf"(?:\A|/)(?:{UNKNOWN}|[^/]*{UNKNOWN}[^/]*)(?:/|\Z)")


def workspace_of(
    work: str, cwd: str, home: str, targets: Callable[[str], tuple[str, ...]] = no_links
) -> tuple[str, ...]:
    """Return the paths of the workspace; empty if the whole home counts as one.

    A home directory, or a parent of it, is not a workspace; then the current directory is used.
    """
    home = posixpath.normpath(home)
    for each in (work, cwd):
        found = posixpath.normpath(each) if each else ""
        if found and found != home and not f"{home}/".startswith(f"{found.rstrip('/')}/"):
            return (found, *targets(found))
    return ()


def is_outside(path: str, place: LookupContext) -> bool:
    """Return whether a path is outside the workspace and the scratch directories.

    If the whole home is the workspace, its hidden files are outside: they belong to other programs.
    """
    found = absolute(path, place)
    if found.startswith(UNKNOWN):
        return bool(place.work)
    if not place.work:
        home = posixpath.normpath(place.home)
        hidden = found.startswith(f"{home}/.") and not found.startswith(f"{home}/.cache/")
        return hidden or not (_within(found, home) or _SCRATCH.match(found))
    return not (any(_within(found, each) for each in place.work) or _SCRATCH.match(found))


def in_a_home(path: str, place: LookupContext) -> bool:
    """Return whether a path is in a home directory."""
    found = absolute(path, place)
    return _within(found, posixpath.normpath(place.home)) or bool(re.match(r"/(?:home|Users|root)(?:/|\Z)", found))


def is_unknown(path: str) -> bool:
    """Return whether a path is only known at run time, except for the results of a search below a directory."""
    bare = path.replace(f"/{ANY_DEPTH}/{UNKNOWN}", "").replace(f"/{ANY_DEPTH}", "")
    return bool(_ESCAPES.search(bare))


def _within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
