"""Frontmatter of SKILL.md: YAML in which every scalar is a text, as the official parser reads it.

Anchors, aliases, tags and duplicate keys are refused. YAML is imported by the first skill that is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from hermes.domain.skill.skill import MAX_CONTENT, SkillError
from hermes.domain.values import dataclass

MAX_FRONTMATTER: Final = 32_768  # characters
_FENCE: Final = "---"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillText:
    fields: Mapping[str, Any]
    body: str


def decoded(data: bytes) -> str:
    """Return the text of SKILL.md. Raises SkillError."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SkillError("SKILL.md is not UTF-8") from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if len(text) > MAX_CONTENT:
        raise SkillError(f"SKILL.md has {len(text)} characters, at most {MAX_CONTENT} are allowed")
    return text


def parse(text: str) -> SkillText:
    """Split SKILL.md where the official parser splits it. Raises SkillError."""
    if not text.startswith(_FENCE):
        raise SkillError("SKILL.md must start with frontmatter between two lines of ---")
    parts = text.split(_FENCE, 2)
    if len(parts) < 3:
        raise SkillError("the frontmatter of SKILL.md has no end: a line of --- is missing")
    if len(parts[1]) > MAX_FRONTMATTER:
        raise SkillError(f"the frontmatter may have at most {MAX_FRONTMATTER} characters")
    return SkillText(fields=_fields(parts[1]), body=parts[2].strip())


def _fields(text: str) -> Mapping[str, Any]:
    import yaml  # noqa: PLC0415 - only where skills are

    text = re.sub(r"^\t+", lambda tabs: "  " * len(tabs[0]), text, flags=re.MULTILINE)  # as the official parser does
    try:
        loaded = yaml.load(text, Loader=_loader())  # noqa: S506 - makes texts, lists and mappings only
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise SkillError(f"the frontmatter is not valid YAML{line}: {error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError):
        raise SkillError("the frontmatter is not valid YAML") from None
    if not isinstance(loaded, dict):
        raise SkillError("the frontmatter must have fields such as name and description")
    return loaded


@cache
def _loader() -> Any:
    import yaml  # noqa: PLC0415

    class TextLoader(yaml.BaseLoader):
        """Loader without aliases, tags and duplicate keys."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) or _is_tagged(event):
                raise yaml.composer.ComposerError(
                    None, None, "anchors, aliases and tags are not allowed", event.start_mark
                )
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: ARG002 - always deep
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            if len(keys) != len(node.value) or len(keys) != len(set(keys)):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key occurs twice or is not a text", node.start_mark
                )
            return super().construct_mapping(node, deep=True)

    return TextLoader


def _is_tagged(event: Any) -> bool:
    return getattr(event, "tag", None) not in (None, "!")


def written(fields: Mapping[str, Any], body: str) -> str:
    """Return SKILL.md that the official parser reads as these fields. Raises SkillError if it could not."""
    import yaml  # noqa: PLC0415

    text = yaml.safe_dump(dict(fields), allow_unicode=True, sort_keys=False, default_flow_style=False, width=2**20)
    result = f"{_FENCE}\n{text}{_FENCE}\n\n{body.strip()}\n"
    if _FENCE in text or parse(result).fields != dict(fields):
        raise SkillError("three hyphens in a row cannot stand in the frontmatter")
    return result
