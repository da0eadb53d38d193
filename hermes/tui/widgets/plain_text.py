"""Text of others for the screen: no control characters, a limit of lines, and colours for diffs."""

from __future__ import annotations

import re
from typing import Final

from rich.text import Text

_SEQUENCE: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_DIFF: Final = re.compile(r"^@@ .+ @@|^--- \S.*\n\+\+\+ ", re.MULTILINE)
_STYLES: Final = (("+++", "bold"), ("---", "bold"), ("@@", "cyan"), ("+", "green"), ("-", "red"))


def printable(text: str) -> str:
    """Return the text without control sequences, and other control characters replaced."""
    if text.isascii() and text.isprintable():
        return text
    text = _SEQUENCE.sub("", text).replace("\r\n", "\n").expandtabs(4)
    return "".join(char if char.isprintable() or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in text)


def one_line(text: str, width: int = 400) -> str:
    line = " ".join(printable(text[: 4 * width]).split())
    return line if len(line) <= width else f"{line[: width - 1]}\N{HORIZONTAL ELLIPSIS}"


def is_diff(text: str) -> bool:
    return _DIFF.search(text) is not None


def coloured_diff(text: str) -> Text:
    """Return a diff with added lines green and removed ones red; the signs stay, for screens without colour."""
    shown = Text(no_wrap=False)
    for line in text.splitlines(keepends=True):
        style = next((style for sign, style in _STYLES if line.startswith(sign)), "")
        shown.append(line, style)
    return shown


def first_lines(text: str, most: int) -> tuple[str, int]:
    """Return the first lines, and how many are left out."""
    lines = text.rstrip("\n").split("\n")
    return "\n".join(lines[:most]), max(0, len(lines) - most)


def last_lines(text: str, most: int) -> str:
    return "\n".join(text.rstrip("\n").split("\n")[-most:])


def age(seconds: float) -> str:
    """Return how long ago something was, in its largest unit."""
    for unit_s, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit_s:
            return f"{int(seconds / unit_s)} {unit}"
    return "now"


def duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
