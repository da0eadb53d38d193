"""Skill service: lists and loads skills for commands and operators. Its library is made by the first use."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.domain.skill.skill import UnknownSkillError

if TYPE_CHECKING:
    from hermes.skills.library import ListedSkill, LoadedSkill, SkillLibrary


class SkillService:
    def __init__(self, root: Path, *, environment: Collection[str], index_max_chars: int) -> None:
        self.root = root
        self._environment = environment
        self._index_max_chars = index_max_chars

    @cached_property
    def library(self) -> SkillLibrary:
        from hermes.skills.library import SkillLibrary  # noqa: PLC0415 - no start needs it

        return SkillLibrary(self.root, environment=self._environment, index_max_chars=self._index_max_chars)

    async def has(self, name: str) -> bool:
        def found() -> bool:
            try:
                return self.library.catalog.get(name).name == name
            except UnknownSkillError:
                return False

        return await asyncio.to_thread(found)

    async def listed(self) -> Sequence[ListedSkill]:
        def listed() -> Sequence[ListedSkill]:
            return self.library.listed()

        return await asyncio.to_thread(listed)

    async def load(self, name: str) -> LoadedSkill:
        """Return a skill with its instructions. Raises SkillError."""

        def loaded() -> LoadedSkill:
            return self.library.load(name)

        return await asyncio.to_thread(loaded)
