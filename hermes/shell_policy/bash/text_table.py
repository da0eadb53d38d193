"""Tables of programs as text: one entry a line, which goes on in lines that begin with a blank."""

from __future__ import annotations

import re
from collections.abc import Iterator


def entries(text: str) -> Iterator[str]:
    """Yield each entry as one line. After a `|`, the next line goes on without a blank."""
    yield from filter(None, re.sub(r"\n +", " ", re.sub(r"\|\n +", "|", text)).split("\n"))


def program_fields(text: str) -> Iterator[tuple[str, dict[str, tuple[str, ...]]]]:
    """Yield each program and its fields: `name name; field value value; field`."""
    for entry in entries(text):
        names, *fields = entry.split(";")
        values = {field: tuple(rest) for field, *rest in (each.split() for each in fields)}
        for name in names.split():
            yield name, values
