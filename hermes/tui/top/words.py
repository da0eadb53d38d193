"""Words and figures of the live view: short forms that fit into a table. Pure."""

from __future__ import annotations

from hermes.tui.top.sample import SessionRow

_DOING = {
    "model": "model call",
    "tools": "",
    "summary": "compressing",
    "approval": "approve?",
    "question": "asks:",
    "queued": "queued",
    "interrupted": "interrupted",
    "none": "",
}
_PHASES = {"resume_pending": "resuming"}


def phase(row: SessionRow) -> str:
    return _PHASES.get(row.phase, row.phase)


def doing(row: SessionRow) -> str:
    words = _DOING.get(row.doing, row.doing)
    step = f"{words} {row.step}" if row.doing == "model" and row.step > 1 else words
    text = " ".join(filter(None, (step, ", ".join(row.what))))
    return " ".join(printable(text).split()) or (f"failed: {row.problem}" if row.problem else "")


def printable(text: str) -> str:
    """Return the text without characters that control the terminal."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)


def short_id(session: str) -> str:
    """Return the random part of a session id; every command accepts it."""
    return session.rpartition("_")[2]


def age(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f}s"
    if seconds < 60:
        return f"{seconds:.0f}s"
    minutes, hours = int(seconds // 60), int(seconds // 3600)
    if hours < 1:
        return f"{minutes}m{int(seconds % 60):02}s"
    return f"{hours}h{minutes % 60:02}m" if hours < 24 else f"{hours // 24}d{hours % 24:02}h"


def number(value: float) -> str:
    """Return a count with at most four characters and a unit."""
    for unit in ("", "k", "M", "G"):
        if value < 1000:
            return (
                f"{value:.0f}"
                if not unit or value >= 100
                else f"{value:.1f}{unit}"
                if value < 10
                else f"{value:.0f}{unit}"
            )
        value /= 1000
    return f"{value:.0f}T"


def money(value: float) -> str:
    return "-" if not value else f"${value:.2f}" if value >= 0.995 else f"${value:.3f}"


def took(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def size(value: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
