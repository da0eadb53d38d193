"""Commands on skills: `/skills`, and `/NAME` that loads the skill NAME into a turn."""

from __future__ import annotations

from typing import Final

from hermes.domain.skill.skill_prompt import skill_message
from hermes.services.commands.context import CommandContext, Handler
from hermes.services.commands.registry import CommandGroup, SlashCommand
from hermes.services.commands.reply import CommandReply
from hermes.services.commands.turn import submit
from hermes.services.skills import SkillService

_MAX_LISTED: Final = 50


def command_of(name: str) -> SlashCommand:
    """Return the command that loads a skill."""
    return SlashCommand(name=name, group=CommandGroup.KNOW, usage="[text]", help="Load this skill", says=True)


async def load(context: CommandContext, skills: SkillService) -> CommandReply:
    loaded = await skills.load(context.parsed.command.name)
    return await submit(context, skill_message(loaded.text, context.argument), "")


async def list_skills(context: CommandContext) -> CommandReply:
    if context.services.skills is None:
        return CommandReply(text="There are no skills.")
    wanted = context.argument.lower()
    rows = []
    for each in await context.services.skills.listed():
        stored = each.stored
        about = (
            stored.skill.description if stored.skill and not each.problem else f"cannot be used: it {each.problem}"
        )
        if wanted in f"{stored.place} {about}".lower():
            rows.append((f"/{stored.name}", about))
    if not rows:
        return CommandReply(text="No skill fits." if wanted else "There are no skills. `hermes skills` adds some.")
    lines = [f"{name}: {about}" for name, about in rows[:_MAX_LISTED]]
    if len(rows) > _MAX_LISTED:
        lines.append(f"{len(rows) - _MAX_LISTED} more: /skills TEXT finds them.")
    return CommandReply(text="\n".join(lines))


HANDLERS: dict[str, Handler] = {"skills": list_skills}
