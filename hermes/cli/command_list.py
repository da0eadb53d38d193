"""List of the daemon's slash commands, grouped, with the descriptions in a column."""

from __future__ import annotations

import sys
from itertools import groupby
from typing import TYPE_CHECKING, Any

from hermes.cli.output import one_line, width

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_USAGE_WIDTH = 28
_MIN_WIDTH = 20  # of the description column; on a narrower terminal it overflows


def print_commands(commands: Sequence[Mapping[str, Any]]) -> None:
    for group, members in groupby(commands, lambda each: str(each.get("group") or "")):
        print(f"\n{one_line(group) or 'Commands of the daemon'}:")
        for command in members:
            for line in _lines(command):
                print(line)


def _lines(command: Mapping[str, Any]) -> Iterator[str]:
    import textwrap

    name = f"/{str(command.get('name', '')).removeprefix('/')}"
    usage, about = one_line(str(command.get("usage") or name)), one_line(str(command.get("help") or ""))
    indent = " " * (_USAGE_WIDTH + 3)
    room = max(_MIN_WIDTH, width(sys.stdout) - len(indent)) if sys.stdout.isatty() else max(1, len(about))
    described = textwrap.wrap(about, room, break_long_words=False) or [""]
    if len(usage) > _USAGE_WIDTH:
        yield f"  {usage}"
    else:
        yield f"  {usage:<{_USAGE_WIDTH}} {described.pop(0)}".rstrip()
    for line in described:
        yield f"{indent}{line}"
