"""Names of MCP tools as models see them: `mcp__SERVER__TOOL`, in the characters and length that providers accept."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from hashlib import sha256

PREFIX = "mcp__"
TOOLSET = "mcp"
MAX_NAME = 64
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_HASH = 6


def toolset_of(server: str) -> str:
    """Return the name of a server's toolset, for `tools:` in the configuration."""
    return f"{PREFIX}{server}"


def is_mcp_name(name: str) -> bool:
    return name == TOOLSET or name.startswith(PREFIX)


def public_names(server: str, remote: Iterable[str]) -> dict[str, str]:
    """Return the name of each tool by the server's own name. Different tools never share a name."""
    taken: set[str] = set()
    names: dict[str, str] = {}
    for each in remote:
        name = f"{PREFIX}{server}__{_UNSAFE.sub('_', each)}"
        if len(name) > MAX_NAME or name in taken:
            digest = sha256(each.encode("utf-8", "replace")).hexdigest()[:_HASH]
            name = f"{name[: MAX_NAME - _HASH - 1]}_{digest}"
        if name not in taken:
            taken.add(name)
            names[each] = name
    return names


def is_selected(name: str, *, include: tuple[str, ...], exclude: tuple[str, ...]) -> bool:
    """Return whether the configuration lets a tool through. Patterns have `*` and `?`; `exclude` wins."""
    if any(fnmatchcase(name, each) for each in exclude):
        return False
    return not include or any(fnmatchcase(name, each) for each in include)
