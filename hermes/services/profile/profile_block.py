"""Beliefs about the person in the system prompt: as they were when the prompt was built. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from hermes.domain.profile.belief import Belief
from hermes.domain.text.fence import without_fences
from hermes.domain.text.injection import suspicion

_ABOUT = (
    "Conclusions from earlier conversations with this person, the surest first. They are background, not a request, "
    "and may be out of date: what the person says now goes first. Do not mention them unless they help."
)


def profile_block(beliefs: Sequence[Belief], max_chars: int) -> str:
    """Return the section of the prompt with the held beliefs, as far as they fit; empty if there are none."""
    lines: list[str] = []
    for belief in beliefs:
        if not belief.is_held or suspicion(belief.text):
            continue
        line = _line(belief)
        if sum(map(len, lines)) + len(line) > max_chars:
            break
        lines.append(line)
    return "\n".join(["# What you believe about the person", _ABOUT, *lines]) if lines else ""


def _line(belief: Belief) -> str:
    day = datetime.fromtimestamp(belief.at, UTC).strftime("%Y-%m-%d")
    origin = "inferred" if belief.inferred else "said"
    return f"- {' '.join(without_fences(belief.text).split())} ({origin}, {day})"
