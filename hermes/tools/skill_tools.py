"""Skill tools: list skills, and load one or one of its files.

Which skills a conversation has loaded is kept in its folder, because a skill must be read before it is changed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

from hermes.domain.access.role import Role
from hermes.domain.errors import HermesError
from hermes.domain.skill.skill import MAX_CONTENT
from hermes.domain.turn.tool_call import Effect
from hermes.skills.catalog import inner_file, read_bytes
from hermes.skills.library import LoadedSkill, SkillLibrary
from hermes.tools.files.replacement import replace_file
from hermes.tools.tool import Tool, ToolContext, ToolError, tool

_VIEWED = "skills.json"
_MAX_LISTED = 200

ToolsOf = Callable[[str, Role], Collection[str]]  # names of tools and toolsets on a platform for a role


def skill_tools(library: SkillLibrary, tools_of: ToolsOf) -> tuple[Tool, Tool]:
    @tool("skills", parallel=True, effect=Effect.PURE)
    async def skills_list(
        context: ToolContext,
        *,
        query: Annotated[str, "only skills whose name, category or description contains this text"] = "",
    ) -> str:
        """List skills: tested instructions for certain tasks, with name and description.

        Also tells why a skill cannot be used here.
        """
        return await asyncio.to_thread(_listed, library, tools_of(context.platform, context.role), query)

    @tool("skills", parallel=True, effect=Effect.PURE)
    async def skill_view(
        context: ToolContext,
        *,
        name: Annotated[str, "name of the skill"],
        path: Annotated[str, "a file of the skill, such as references/api.md; omit it for the instructions"] = "",
    ) -> str:
        """Load a skill: its instructions and the list of its files, or one of these files.

        Scripts run in the terminal under the path that is given.
        """
        tools = tools_of(context.platform, context.role)
        try:
            return await asyncio.to_thread(_viewed, library, context, tools, name, path)
        except (HermesError, OSError) as error:
            raise ToolError(f"{name[:80]}: {error}") from error

    return skills_list, skill_view


def _listed(library: SkillLibrary, tools: Collection[str], query: str) -> str:
    wanted = query.strip().lower()
    lines = []
    for each in library.listed(tools):
        about = each.stored.skill.description if each.stored.skill else ""
        if wanted in f"{each.stored.place} {about}".lower():
            lines.append(f"- {each.stored.place}: {f'cannot be used: it {each.problem}' if each.problem else about}")
    if not lines:
        return "No skill fits." if wanted else "There are no skills."
    more = [f"{len(lines) - _MAX_LISTED} more: give a query"] if len(lines) > _MAX_LISTED else []
    return "\n".join([*lines[:_MAX_LISTED], *more])


def _viewed(library: SkillLibrary, context: ToolContext, tools: Collection[str], name: str, path: str) -> str:
    loaded = library.load(name, tools)
    if path:
        return _file_text(loaded, path)
    note_viewed(context.folder, loaded, context.turn)
    return loaded.text


def _file_text(loaded: LoadedSkill, path: str) -> str:
    place = inner_file(loaded.stored.folder, path)
    try:
        text = read_bytes(place).decode()
    except FileNotFoundError:
        known = ", ".join(loaded.files[:20]) or "none"
        raise ToolError(f"{loaded.stored.name} has no file {path[:100]!r}. Its files: {known}.") from None
    except UnicodeDecodeError:
        raise ToolError(f"{path} is not text. It is at {place}.") from None
    return text if len(text) <= MAX_CONTENT else f"{text[:MAX_CONTENT]}\n[cut: the rest is in {place}]"


# ------------------------------------------------------------ what a conversation has loaded


def note_viewed(folder: Path, loaded: LoadedSkill, turn: str) -> None:
    """Remember that a conversation has loaded this version in this turn."""
    viewed = dict(viewed_in(folder))
    viewed[loaded.stored.name] = {"digest": loaded.digest, "turn": turn}
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(folder / _VIEWED, json.dumps(viewed).encode(), mode=0o600)


def viewed_in(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return the skills that a conversation has loaded: digest of the version and turn, by name."""
    try:
        viewed = json.loads((folder / _VIEWED).read_bytes())
        return {str(name): dict(each) for name, each in viewed.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
