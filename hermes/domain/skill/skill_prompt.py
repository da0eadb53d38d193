"""Text of a loaded skill, as the model reads it. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def skill_text(name: str, folder: str, body: str, files: Sequence[str]) -> str:
    lines = [f"Skill {name}, in {folder}", "", body]
    if files:
        lines += ["", "Files of this skill:", *(f"- {path}" for path in files)]
    return "\n".join(lines)


def skill_message(text: str, request: str) -> str:
    """Return the message of a person who loads a skill and asks for something."""
    asked = request.strip() or "Do what this skill is for. Ask if something is missing."
    return f"I loaded this skill. Follow it.\n\n{text}\n\nMy request: {asked}"
