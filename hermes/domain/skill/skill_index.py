"""Index of skills in the prompt: names and descriptions, bounded in size. Pure: equal skills give equal bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hermes.domain.skill.skill import Skill
from hermes.domain.values import dataclass

_SHORT: Final = 80  # characters of a description when not all fit
_ABOUT: Final = """\
# Skills
Skills are tested instructions for certain tasks. If one fits the request, load it with skill_view before you start, \
and follow it. Its other files are loaded the same way; its scripts run in the terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedSkill:
    skill: Skill
    category: str = ""


def index_text(skills: Sequence[IndexedSkill], max_chars: int) -> str:
    """Return the index: whole if it fits, else with short descriptions, else with names only, else cut."""
    if not skills:
        return ""
    ordered = sorted(skills, key=lambda each: (each.category, each.skill.name))
    for length in (None, _SHORT, 0):
        lines = [_line(each, length) for each in ordered]
        if len(_ABOUT) + sum(len(line) + 1 for line in lines) <= max_chars:
            return "\n".join([_ABOUT, *lines])
    return "\n".join([_ABOUT, *_cut(lines, max_chars - len(_ABOUT))])


def _cut(lines: Sequence[str], room: int) -> list[str]:
    kept: list[str] = []
    room -= 60  # for the last line
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return [*kept, f"- {len(lines) - len(kept)} more: skills_list finds them"]


def _line(each: IndexedSkill, length: int | None) -> str:
    name = f"{each.category}/{each.skill.name}" if each.category else each.skill.name
    text = "".join(char if char.isprintable() else " " for char in each.skill.description)
    if length is not None and len(text) > length:
        text = f"{text[: length - 1].rstrip()}…" if length else ""
    return f"- {name}: {text}" if text else f"- {name}"
