"""Skill: instructions and files for one kind of task, in the agentskills.io format. Pure.

`check_fields` accepts what the official validator accepts, and more: fields that other agents use. `check_portable`
accepts only what the official validator accepts, and is the rule for skills that Hermes writes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, TypeAlias

from hermes.domain.errors import HermesError
from hermes.domain.values import dataclass

MAX_NAME: Final = 64
MAX_DESCRIPTION: Final = 1024
MAX_COMPATIBILITY: Final = 500
MAX_CONTENT: Final = 100_000  # characters of SKILL.md
MAX_FILE_BYTES: Final = 1 << 20
MAX_FILES: Final = 200
MAX_TOTAL_BYTES: Final = 16 << 20
SKILL_FILE: Final = "SKILL.md"
FOLDERS: Final = ("references", "templates", "scripts", "assets")
OFFICIAL_FIELDS: Final = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})
_OWN_NAME: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_SECTION: Final = "hermes"  # part of `metadata` with our own fields

Fields: TypeAlias = Mapping[str, Any]  # frontmatter; every scalar is a string


class SkillError(HermesError):
    """The skill cannot be used, changed or installed."""

    code = "bad_skill"


class UnknownSkillError(SkillError):
    """There is no skill of this name."""

    code = "unknown_skill"


class Missing(StrEnum):
    """Kinds of conditions that a skill has."""

    PLATFORM = "platform"
    ENVIRONMENT = "environment"
    TOOL = "tool"
    FALLBACK = "fallback"  # it stands in for a tool that is available


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmetCondition:
    kind: Missing
    names: tuple[str, ...]

    @property
    def text(self) -> str:
        names = ", ".join(self.names)
        match self.kind:
            case Missing.PLATFORM:
                return f"is for {names} only"
            case Missing.ENVIRONMENT:
                return f"needs the environment variables {names}: set them and list them in terminal.pass_variables"
            case Missing.TOOL:
                return f"needs the tools {names}"
            case Missing.FALLBACK:
                return f"stands in for {names}, which is available"


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    name: str
    description: str
    license: str = ""
    compatibility: str = ""
    allowed_tools: str = ""
    metadata: Mapping[str, str]
    platforms: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()  # variables that it needs
    tools: tuple[str, ...] = ()  # tools or toolsets that it needs
    fallback_for: tuple[str, ...] = ()  # it is hidden while these are available

    def unmet(
        self, *, platform: str, environment: Collection[str], tools: Collection[str]
    ) -> tuple[UnmetCondition, ...]:
        """Return the conditions that do not hold. `tools` has names of tools and toolsets."""
        found = []
        if self.platforms and platform not in self.platforms:
            found.append(UnmetCondition(kind=Missing.PLATFORM, names=self.platforms))
        if lacking := tuple(name for name in self.environment if name not in environment):
            found.append(UnmetCondition(kind=Missing.ENVIRONMENT, names=lacking))
        if lacking := tuple(name for name in self.tools if name not in tools):
            found.append(UnmetCondition(kind=Missing.TOOL, names=lacking))
        if self.fallback_for and all(name in tools for name in self.fallback_for):
            found.append(UnmetCondition(kind=Missing.FALLBACK, names=self.fallback_for))
        return tuple(found)


def normalised(name: str) -> str:
    import unicodedata  # noqa: PLC0415 - its tables take 0.1 MB

    return unicodedata.normalize("NFKC", name.strip())


def check_fields(fields: Fields, folder: str = "") -> Skill:
    """Return the skill of a frontmatter. Raises SkillError. `folder` is the name of its directory, if it has one."""
    if problems := [*_name_problems(fields.get("name"), folder), *_text_problems(fields)]:
        raise SkillError("; ".join(problems))
    own = _own_fields(fields)
    metadata = fields.get("metadata")
    return Skill(
        name=normalised(fields["name"]),
        description=" ".join(fields["description"].split()),
        license=_text(fields.get("license")),
        compatibility=_text(fields.get("compatibility")),
        allowed_tools=_text(fields.get("allowed-tools")),
        metadata={str(key): str(value) for key, value in metadata.items()} if isinstance(metadata, Mapping) else {},
        platforms=tuple(_PLATFORMS.get(name, name) for name in _words(own.get("platforms"))),
        environment=_environment(own),
        tools=(*_words(own.get("requires_toolsets")), *_words(own.get("requires_tools"))),
        fallback_for=(*_words(own.get("fallback_for_toolsets")), *_words(own.get("fallback_for_tools"))),
    )


def check_portable(fields: Fields, folder: str) -> Skill:
    """Return the skill. Raises SkillError also for what other agents would not accept."""
    skill = check_fields(fields, folder)
    if extra := sorted(set(fields) - OFFICIAL_FIELDS):
        raise SkillError(f"unknown fields {', '.join(extra)}: put them below metadata")
    if not set(skill.name) <= _OWN_NAME:
        raise SkillError("the name may have lower-case letters a-z, digits and hyphens only")
    return skill


def check_path(path: str) -> tuple[str, ...]:
    """Return the parts of a path inside a skill. Raises SkillError unless it names a plain place below the folder."""
    parts = tuple(path.split("/"))
    bad = "\\" in path or "\0" in path or not path.isprintable() or len(path) > 300 or len(parts) > 8
    if bad or any(part in ("", ".", "..") or part.startswith(".") or len(part.encode()) > 200 for part in parts):
        raise SkillError(f"{path[:100]!r} is not a path inside the skill")
    return parts


# ------------------------------------------------------------ checks

_PLATFORMS: Final = {"darwin": "macos", "mac": "macos", "osx": "macos", "win32": "windows"}


def _name_problems(given: object, folder: str) -> Sequence[str]:
    if not isinstance(given, str) or not given.strip():
        return ["the name is missing"]
    name = normalised(given)
    problems = []
    if len(name) > MAX_NAME:
        problems.append(f"the name has {len(name)} characters, at most {MAX_NAME} are allowed")
    if name != name.lower() or not all(char.isalnum() or char == "-" for char in name):
        problems.append("the name may have lower-case letters, digits and hyphens only")
    if name.startswith("-") or name.endswith("-") or "--" in name:
        problems.append("hyphens may stand only between other characters of the name")
    if folder and normalised(folder) != name:
        problems.append(f"the name is {name[:MAX_NAME]!r}, but its folder is {folder[:MAX_NAME]!r}")
    return problems


def _text_problems(fields: Fields) -> Sequence[str]:
    problems = []
    description, compatibility = fields.get("description"), fields.get("compatibility", "")
    if not isinstance(description, str) or not description.strip():
        problems.append("the description is missing")
    elif len(description) > MAX_DESCRIPTION:
        problems.append(f"the description has {len(description)} characters, at most {MAX_DESCRIPTION} are allowed")
    if not isinstance(compatibility, str):
        problems.append("compatibility must be a text")
    elif len(compatibility) > MAX_COMPATIBILITY:
        problems.append(f"compatibility may have at most {MAX_COMPATIBILITY} characters")
    return problems


def _own_fields(fields: Fields) -> dict[str, Any]:
    """Return the fields about conditions, wherever other agents put them."""
    metadata = fields.get("metadata")
    places: list[Fields] = [fields]
    if isinstance(metadata, Mapping):
        places.append(metadata)
        if isinstance(metadata.get(_SECTION), Mapping):
            places.append(metadata[_SECTION])
    return {str(key).replace("-", "_").lower(): value for place in places for key, value in place.items()}


def _environment(own: Mapping[str, Any]) -> tuple[str, ...]:
    """Return names of variables, given as texts or as mappings with `name`."""
    given = own.get("required_environment_variables") or own.get("requires_env")
    if isinstance(given, list):
        given = [each.get("name", "") if isinstance(each, Mapping) else each for each in given]
    found = _words(given)
    return tuple(name for name in found if name.isidentifier())


def _words(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.strip("[]").replace(",", " ").split()
    if not isinstance(value, list):
        return ()
    return tuple(word.strip(" '\"") for word in value if isinstance(word, str) and word.strip(" '\""))


def _text(value: object) -> str:
    if isinstance(value, list):
        return " ".join(str(each) for each in value)
    return value.strip() if isinstance(value, str) else ""
