"""Output for people: tables, times, sizes, and text without terminal control characters."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Literal, TextIO

if TYPE_CHECKING:
    from collections.abc import Sequence

_STYLES = {
    "running": "green",
    "waiting": "cyan",
    "restarting": "yellow",
    "resume_pending": "yellow",
    "asking": "cyan",
    "sending": "yellow",
    "parked": "red",
    "interrupted": "red",
    "failed": "red",
    "idle, failed": "red",
    "undelivered": "red",
    "suspended": "red",
    "ended": "dim",
}
_WIDTH = 100  # of quoted text within a line
_MIN_WIDTH = 16  # of a table's last column; below it, other columns are dropped
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def printable(text: str) -> str:
    """Return the text with control characters replaced, so that it cannot control the terminal."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)


def one_line(text: str) -> str:
    return " ".join(printable(text).split())


def shortened(text: str, width: int = _WIDTH) -> str:
    line = one_line(text)
    return line if len(line) <= width else f"{line[: width - 1]}{_ELLIPSIS}"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_text(text: str, *, indent: str = "", file: TextIO | None = None, alarm: bool = False) -> None:
    """Print text. On a terminal it is wrapped, and red if `alarm` is set; elsewhere it is printed as it is."""
    file = file or sys.stdout
    red, plain = ("\033[31m", "\033[0m") if alarm and file.isatty() and not os.environ.get("NO_COLOR") else ("", "")
    for line in text.split("\n"):
        for part in _wrapped(line, indent, width(file)) if file.isatty() else [line]:
            print(f"{red}{part}{plain}", file=file, flush=True)


def width(file: TextIO) -> int:
    """Return the columns of the terminal itself: COLUMNS in the environment may be out of date."""
    import shutil
    from contextlib import suppress

    with suppress(OSError, ValueError):
        if columns := os.get_terminal_size(file.fileno()).columns:
            return columns
    return shutil.get_terminal_size().columns


def _wrapped(line: str, indent: str, columns: int) -> list[str]:
    import textwrap

    lead = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(
        line,
        columns,
        subsequent_indent=lead + indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    drop: Sequence[str] = (),
    alarm: str = "",
    numbers: Sequence[str] = (),
) -> None:
    """Print a table: plain and whole to a pipe, coloured and fitted to the width on a terminal.

    If the terminal is too narrow, the columns of `drop` are dropped in order, then the last column is cut off. Cells
    of the column `alarm` are red; columns of `numbers` are right-aligned.
    """
    clean = [[one_line(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _print_rich(list(columns), clean, drop, alarm, numbers)
        return
    widths = [max(map(len, column)) for column in zip(columns, *clean, strict=True)]
    sides = [str.rjust if name in numbers else str.ljust for name in columns]
    for row in (columns, *clean):
        cells = (to_side(cell, width) for cell, width, to_side in zip(row, widths, sides, strict=True))
        print("  ".join(cells).rstrip())


def _print_rich(
    columns: list[str], rows: list[list[str]], drop: Sequence[str], alarm: str, numbers: Sequence[str]
) -> None:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=width(sys.stdout))
    cells = {name: [row[place] for row in rows] for place, name in enumerate(columns)}
    *fixed, last = columns
    widths = {name: max(map(cell_len, [name, *cells[name]])) for name in columns}
    for name in drop:
        if sum(widths[each] + 2 for each in fixed) + min(widths[last], _MIN_WIDTH) < console.width:
            break
        fixed.remove(name)
    # The last column of the screen stays empty: some terminals wrap as soon as it is written.
    room = max(1, console.width - 1 - sum(widths[each] + 2 for each in fixed))
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in fixed:
        justify: Literal["left", "right"] = "right" if name in numbers else "left"
        table.add_column(name, no_wrap=True, min_width=widths[name], justify=justify)
    table.add_column(last, no_wrap=True, overflow="ellipsis", max_width=room)
    for row in zip(*(cells[name] for name in (*fixed, last)), strict=True):
        named = zip((*fixed, last), row, strict=True)
        table.add_row(*(Text(cell, style=_style(cell, is_alarm=name == alarm)) for name, cell in named))
    console.print(table)


def _style(cell: str, *, is_alarm: bool) -> str:
    return "red" if is_alarm and cell != "-" else _STYLES.get(cell, "")


def moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(at))


def ago(at: float) -> str:
    """Return the time since `at` in one unit."""
    passed = max(0, int(time.time() - at))
    for seconds, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if passed >= seconds:
            return f"{passed // seconds} {unit} ago"
    return f"{passed} s ago"


def duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 60:
        return f"{seconds:.0f}s"
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86_400)
    if hours < 1:
        return f"{minutes}m{int(seconds % 60):02}s"
    return f"{hours}h{minutes % 60:02}m" if days < 1 else f"{days}d{hours % 24:02}h"


def size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
