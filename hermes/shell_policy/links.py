"""Targets of symbolic links in a command's paths.

This is the only part of the policy that reads the disk. Blocking: call it in a thread.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase

MAX_ENTRIES = 5_000  # of a directory that is matched with a pattern
_PATTERN = re.compile(r"[*?\[\0]")


def link_targets(path: str) -> tuple[str, ...]:
    """Return the targets of the symbolic links in an absolute path; empty if there are none.

    Directories before a pattern are resolved. A pattern in the last part is matched with the links there.
    """
    if not path.startswith("/") or path.startswith(("/dev/", "/proc/")):  # these depend on the reading process
        return ()
    found = _PATTERN.search(path)
    if found is None:
        real = os.path.realpath(path)
        return (real,) if real != path else ()
    directory = path[: path.rindex("/", 0, found.start()) + 1]
    rest = path[len(directory) :]
    real = os.path.realpath(directory)
    targets = [f"{real.rstrip('/')}/{rest}"] if real != (directory.rstrip("/") or "/") else []
    if "/" not in rest and "\0" not in rest:
        targets += _matching_links(real, rest)
    return tuple(targets)


def _matching_links(directory: str, pattern: str) -> list[str]:
    targets: list[str] = []
    try:
        with os.scandir(directory) as entries:
            for count, entry in enumerate(entries):
                if count >= MAX_ENTRIES:
                    return [*targets, "\0"]  # anything
                if entry.is_symlink() and fnmatchcase(entry.name, pattern.replace("[^", "[!")):
                    targets.append(os.path.realpath(entry.path))
    except OSError:
        return targets
    return targets
