"""Skill tools: list skills, load one or one of its files, and change one.

Which skills a conversation has loaded is kept in its folder, because a skill must be read before it is changed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from hermes.domain.access.role import Role
from hermes.domain.change import ChangeAction, ChangeAuthor
from hermes.domain.child.child import Purpose
from hermes.domain.errors import HermesError
from hermes.domain.skill.skill import MAX_CONTENT
from hermes.domain.skill.skill_version import SkillOrigin
from hermes.domain.turn.tool_call import Effect
from hermes.ports.skills import SkillWish, SkillWriter
from hermes.skills.catalog import inner_file, read_bytes
from hermes.skills.library import LoadedSkill, SkillLibrary
from hermes.tools.files.replacement import replace_file
from hermes.tools.tool import Tool, ToolContext, ToolError, tool

_VIEWED = "skills.json"
_MAX_LISTED = 200

ToolsOf = Callable[[str, Role], Collection[str]]  # names of tools and toolsets on a platform for a role


_CREATE: Final = ChangeAction.CREATE
_UPKEEP: Final = (Purpose.REVIEW, Purpose.CONSOLIDATION)  # they read skills without using them


def skill_tools(library: SkillLibrary, writer: SkillWriter, tools_of: ToolsOf) -> tuple[Tool, ...]:
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
            loaded, text = await asyncio.to_thread(_viewed, library, context, tools, name, path)
            if not path and context.purpose not in _UPKEEP:
                await writer.note_loaded(loaded.stored.name, loaded.digest, _origin(context))
        except (HermesError, OSError) as error:
            raise ToolError(f"{name[:80]}: {error}") from error
        return text

    return skills_list, skill_view, _manage_tool(writer)


def _manage_tool(writer: SkillWriter) -> Tool:
    @tool("skills", effect=Effect.PURE)  # its id makes a repeated call one change
    async def skill_manage(
        context: ToolContext,
        *,
        action: Annotated[
            Literal["create", "edit", "patch", "delete", "write_file", "remove_file"],
            "create or edit: give all of SKILL.md as content; patch: replace old_text by new_text",
        ],
        name: Annotated[str, "name of the skill: lower-case letters, digits and hyphens"],
        content: Annotated[str, "SKILL.md with frontmatter (name and description), or the content of the file"] = "",
        path: Annotated[str, "file inside the skill, such as scripts/run.sh; for patch, SKILL.md by default"] = "",
        old_text: Annotated[str, "text that is in the file exactly once"] = "",
        new_text: Annotated[str, "its replacement"] = "",
        category: Annotated[str, "category of a new skill"] = "",
        reason: Annotated[str, "why, in one sentence, for the history"] = "",
    ) -> str:
        """Create or change a skill, so that the next similar task goes better.

        Create one after a task with many steps that is likely to come again: when to use it, the steps that worked,
        the mistakes to avoid. Patch one that failed or that the person corrected. Load a skill before you change it.
        """
        if not context.role.approves:
            raise ToolError("Only turns of the owner and admins change skills.")
        wish = SkillWish(
            action=ChangeAction(action),
            name=name.strip(),
            category=category.strip("/ "),
            content=content,
            path=path,
            old_text=old_text,
            new_text=new_text,
            note=" ".join(reason.split())[:200],
        )
        try:
            return await _managed(writer, context, wish)
        except HermesError as error:
            raise ToolError(f"The skill was not changed: {error}.") from error

    return skill_manage


async def _managed(writer: SkillWriter, context: ToolContext, wish: SkillWish) -> str:
    viewed = await asyncio.to_thread(viewed_in, context.folder)
    if wish.action is not _CREATE and wish.name not in viewed:
        raise ToolError(f"Load {wish.name} with skill_view before you change it.")
    expects = str(viewed[wish.name]["digest"]) if wish.action is not _CREATE else ""
    written = await writer.write(wish, _origin(context), expects)
    if written.waits:
        found = f" It was found that {'; '.join(written.reasons)}." if written.reasons else ""
        return f"The change waits for the person's approval (/skills approve {wish.name} {written.number}).{found}"
    await asyncio.to_thread(_note_version, context.folder, wish.name, written.digest, context.turn)
    return f"{wish.name} is now at version {written.number}."


def _origin(context: ToolContext) -> SkillOrigin:
    return SkillOrigin(
        author=ChangeAuthor.REVIEW if context.purpose in _UPKEEP else ChangeAuthor.AGENT,
        operation=f"{context.turn}:{context.call}",
        by=context.by,
        session=context.session,
        turn=context.turn,
    )


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


def _viewed(
    library: SkillLibrary, context: ToolContext, tools: Collection[str], name: str, path: str
) -> tuple[LoadedSkill, str]:
    loaded = library.load(name, tools)
    if path:
        return loaded, _file_text(loaded, path)
    _note_version(context.folder, loaded.stored.name, loaded.digest, context.turn)
    return loaded, loaded.text


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


def _note_version(folder: Path, name: str, digest: str, turn: str) -> None:
    """Remember that a conversation knows this version."""
    viewed = dict(viewed_in(folder))
    viewed[name] = {"digest": digest, "turn": turn}
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(folder / _VIEWED, json.dumps(viewed).encode(), mode=0o600)


def viewed_in(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return the skills that a conversation has loaded: digest of the version and turn, by name."""
    try:
        viewed = json.loads((folder / _VIEWED).read_bytes())
        return {str(name): dict(each) for name, each in viewed.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
