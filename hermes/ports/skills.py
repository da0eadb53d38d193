"""Skill port: changes that the agent makes to its skills."""

from __future__ import annotations

from typing import Protocol

from hermes.domain.change import ChangeAction
from hermes.domain.skill.skill_version import SkillOrigin
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillWish:
    """Change of a skill: create, edit, patch, delete, write_file or remove_file."""

    action: ChangeAction
    name: str
    category: str = ""  # of a new skill
    content: str = ""  # of SKILL.md or the file
    path: str = ""  # inside the skill
    old_text: str = ""
    new_text: str = ""
    note: str = ""  # why, for people


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillWritten:
    number: int  # of the change
    digest: str  # of the version
    waits: bool = False  # for a person's approval
    reasons: tuple[str, ...] = ()  # what the scan found


class SkillWriter(Protocol):
    async def write(self, wish: SkillWish, origin: SkillOrigin, expects: str) -> SkillWritten:
        """Change a skill. Raises SkillError. `expects` is the digest of the version that was read."""

    async def note_loaded(self, name: str, digest: str, origin: SkillOrigin) -> None:
        """Record that a turn has loaded this version."""
