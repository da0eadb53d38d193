"""Commands on skills: `/skills`, and `/NAME` that loads the skill NAME into a turn."""

from __future__ import annotations

from typing import Final

from hermes.domain.change import Change, ChangeAuthor
from hermes.domain.skill.skill_prompt import skill_message
from hermes.domain.skill.skill_version import SkillOrigin, version_in
from hermes.services.commands.context import CommandContext, Handler, whole_number
from hermes.services.commands.registry import CommandGroup, SlashCommand
from hermes.services.commands.reply import CommandReply, refused
from hermes.services.commands.turn import submit
from hermes.services.learning.skill_service import SkillService

_MAX_LISTED: Final = 50
_MAX_DIFF: Final = 6000
_WORDS: Final = ("pending", "approve", "reject", "diff")


def command_of(name: str) -> SlashCommand:
    """Return the command that loads a skill."""
    return SlashCommand(name=name, group=CommandGroup.KNOW, usage="[text]", help="Load this skill", says=True)


async def load(context: CommandContext, skills: SkillService) -> CommandReply:
    loaded = await skills.load(context.parsed.command.name)
    reply = await submit(context, skill_message(loaded.text, context.argument), "")
    if reply.receipt is not None and not reply.receipt.duplicate:
        origin = SkillOrigin(
            author=ChangeAuthor.PERSON,
            operation=reply.receipt.turn,
            by=context.who,
            session=reply.receipt.session,
            turn=reply.receipt.turn,
        )
        await skills.runs.loaded(loaded.stored.name, loaded.digest, origin)
    return reply


async def manage(context: CommandContext) -> CommandReply:
    skills = context.services.skills
    if skills is None:
        return CommandReply(text="There are no skills.")
    word, *rest = context.argument.split() or [""]
    if word not in _WORDS:
        return await _listed(context, skills)
    if not context.caller.role.approves:
        return refused("Changes of skills are for the owner and admins.")
    if word == "pending":
        waiting = await skills.editor.proposals()
        lines = [f"{name} {change.number}: {_about(change)}" for name, change in waiting]
        hint = ["/skills diff, approve or reject NAME N"] if lines else ["No change waits for approval."]
        return CommandReply(text="\n".join([*lines, *hint]))
    number = whole_number(rest[1], low=1, high=10**6) if len(rest) == 2 else None
    if number is None:
        return context.usage("Give the name of the skill and the number of the change.")
    return await _decided(context, skills, word, rest[0], number)


async def _decided(context: CommandContext, skills: SkillService, word: str, name: str, number: int) -> CommandReply:
    if word == "diff":
        found = await skills.operations.diff(name, number)
        return CommandReply(text=found["diff"][:_MAX_DIFF] or "It changes nothing.")
    origin = SkillOrigin(
        author=ChangeAuthor.PERSON,
        operation=f"{word}:{number}",
        by=context.who,
        session="" if context.session is None else context.session.id,
    )
    if word == "approve":
        change = await skills.editor.approve(name, number, origin)
        return CommandReply(text=f"{name} is now at version {change.number}.")
    await skills.editor.reject(name, number, origin)
    return CommandReply(text=f"Change {number} of {name} was rejected.")


def _about(change: Change) -> str:
    version = version_in(change)
    return " ".join(filter(None, (version.wish, version.note))) if version is not None else ""


async def _listed(context: CommandContext, skills: SkillService) -> CommandReply:
    wanted = context.argument.lower()
    rows = []
    for each in await skills.listed():
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


HANDLERS: dict[str, Handler] = {"skills": manage}
