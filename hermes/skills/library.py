"""Library: the skills that a conversation may load, and why another one is not there. All functions block."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path

from hermes.domain.skill.skill import SkillError, UnknownSkillError
from hermes.domain.skill.skill_index import IndexedSkill, index_text
from hermes.domain.skill.skill_prompt import skill_text
from hermes.domain.text.injection import suspicion
from hermes.domain.values import dataclass
from hermes.skills.catalog import SkillCatalog, StoredSkill
from hermes.skills.frontmatter import parse
from hermes.skills.skill_state import SkillStateFile
from hermes.skills.skill_tree import main_text, read_tree, tree_digest

_PLATFORM = {"darwin": "macos", "win32": "windows"}.get(sys.platform, sys.platform)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSkill:
    stored: StoredSkill
    problem: str = ""  # why it cannot be loaded; empty: it can


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSkill:
    stored: StoredSkill
    body: str
    files: tuple[str, ...]  # besides SKILL.md
    digest: str  # of the version

    @property
    def text(self) -> str:
        return skill_text(self.stored.name, str(self.stored.folder), self.body, self.files)


class SkillLibrary:
    def __init__(self, root: Path, *, environment: Collection[str] = (), index_max_chars: int = 8000) -> None:
        """`environment` has the names of the variables that commands of tools get."""
        self.root = root
        self.catalog = SkillCatalog(root)
        self.state = SkillStateFile(root)
        self._environment = frozenset(environment)
        self._index_max_chars = index_max_chars
        self._judged: dict[str, tuple[StoredSkill, str, str]] = {}  # by name: skill, suspicion and digest

    def listed(self, tools: Collection[str] | None = None) -> tuple[ListedSkill, ...]:
        """Return all skills. `tools` are those that the person has; None: conditions do not matter."""
        found = self.catalog.all()
        return tuple(ListedSkill(stored=each, problem=self._problem(each, tools)) for each in found)

    def offered(self, tools: Collection[str]) -> tuple[StoredSkill, ...]:
        return tuple(each.stored for each in self.listed(tools) if not each.problem)

    def index(self, tools: Collection[str]) -> str:
        """Return the index for the prompt; empty if there are no skills."""
        skills = [
            IndexedSkill(skill=each.skill, category=each.category)
            for each in self.offered(tools)
            if each.skill is not None
        ]
        return index_text(skills, self._index_max_chars)

    def find(self, name: str, tools: Collection[str] | None = None) -> StoredSkill:
        """Return a skill that can be loaded. Raises SkillError."""
        try:
            stored = self.catalog.get(name)
        except UnknownSkillError as error:
            near = get_close_matches(name, [each.name for each in self.catalog.all()], n=1)
            hint = f"did you mean {near[0]}?" if near else "skills_list lists them"
            raise UnknownSkillError(f"{error}; {hint}") from None
        if problem := self._problem(stored, tools):
            raise SkillError(f"the skill {stored.name} cannot be used: it {problem}")
        return stored

    def load(self, name: str, tools: Collection[str] | None = None) -> LoadedSkill:
        """Return a skill with its instructions. Raises SkillError and OSError."""
        stored = self.find(name, tools)
        tree = read_tree(stored.folder)
        files = tuple(path for path in sorted(tree) if path != "SKILL.md")
        body = parse(main_text(stored.folder)).body
        return LoadedSkill(stored=stored, body=body, files=files, digest=tree_digest(tree))

    def _problem(self, stored: StoredSkill, tools: Collection[str] | None) -> str:
        """Return why the skill cannot be used, as the end of a sentence that begins with `it`; empty if it can."""
        if stored.skill is None:
            return f"is not valid: {stored.problem}"
        if stored.name in self.state.load().disabled:
            return f"is disabled: `hermes skills enable {stored.name}` enables it"
        if tools is not None:
            unmet = stored.skill.unmet(platform=_PLATFORM, environment=self._environment, tools=tools)
            if unmet:
                return "; it ".join(each.text for each in unmet)
        if suspicious := self._suspicion(stored):
            return f"is blocked because {suspicious}: see `hermes skills audit {stored.name}`"
        return ""

    def _suspicion(self, stored: StoredSkill) -> str:
        known = self._judged.get(stored.name)
        if known is None or known[0] is not stored:
            try:
                text = main_text(stored.folder)
            except (SkillError, OSError) as error:
                return f"it cannot be read ({error})"
            known = (stored, suspicion(text), hashlib.sha256(text.encode()).hexdigest())
            self._judged[stored.name] = known
        _, found, digest = known
        return found if found and self.state.load().accepted.get(stored.name) != digest else ""
