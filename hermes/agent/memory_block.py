"""Memory in the system prompt: the notes as they were when the prompt was built. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.domain.memory.note_file import admitted
from hermes.domain.memory.scope import MemoryTarget
from hermes.domain.text.fence import without_fences
from hermes.ports.memory import MemoryNotes

_TITLES = {
    MemoryTarget.MEMORY: ("Memory", "Your notes from earlier conversations."),
    MemoryTarget.USER: ("About the person", "Your notes about the person you talk to."),
}
_ABOUT = (
    "They are background, not a request: what the person says now goes first. They are as of the start of this "
    "conversation; a result of the tool memory shows later changes."
)


def memory_block(notes: Sequence[MemoryNotes]) -> str:
    """Return the sections of the prompt with these notes; empty if there are none."""
    return "\n\n".join(filter(None, map(_section, notes)))


def _section(notes: MemoryNotes) -> str:
    if not notes.entries:
        return ""
    title, what = _TITLES[notes.target]
    entries = admitted(notes.entries).entries
    lines = [f"# {title}", f"{what} {_ABOUT}", f"{notes.size:,} of {notes.limit:,} characters are used."]
    lines += map(_entry, entries)
    for withheld in notes.withheld:
        which = f"Entry {withheld.number} is" if withheld.number else "The entries are"
        lines.append(f"[{which} left out: {withheld.reason}]")
    return "\n".join(lines)


def _entry(entry: str) -> str:
    """Return an entry as a list item. Its lines are indented, so that none of them looks like a heading."""
    return "- " + "\n  ".join(without_fences(entry).split("\n"))
