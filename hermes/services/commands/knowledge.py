"""Read-only commands: status, why, usage, insights, whoami, help. They work at any time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from hermes.domain.access.role import Role
from hermes.services.commands.command_help import GREETING, help_text
from hermes.services.commands.context import CommandContext, Handler, whole_number
from hermes.services.commands.reply import CommandReply
from hermes.services.commands.wording import TALLY_HEADINGS, insights, status, tally_rows, usage
from hermes.services.context.context_text import context_table

DAYS = 30
MAX_DAYS = 365
_DAYS_WISH = re.compile(r"(?:--days[= ]\s*)?(\d+)(?:\s*days?)?", re.IGNORECASE)
_MAY = {
    Role.OWNER: "the owner: you see all conversations",
    Role.ADMIN: "an admin: you see your own conversations, and approve tool calls of others",
    Role.USER: "a user: you see your own conversations",
    Role.GUEST: "a guest: you see your own conversations",
}
_NOTHING_YET = "There is no conversation here yet. The next message starts one."


async def tell_status(context: CommandContext) -> CommandReply:
    if context.session is None:
        return CommandReply(text=_NOTHING_YET)
    text = status(context.session, context.services.default(), context.services.clock())
    return CommandReply(text="\n".join(filter(None, (text, context.reset))))


async def tell_why(context: CommandContext) -> CommandReply:
    return CommandReply(text=context.why or _NOTHING_YET)


async def tell_usage(context: CommandContext) -> CommandReply:
    if context.session is None:
        return CommandReply(text=_NOTHING_YET)
    return CommandReply(text=usage(context.session, context.services.default(), context.services.clock()))


async def tell_context(context: CommandContext) -> CommandReply:
    service = context.services.context
    if context.session is None or service is None:
        return CommandReply(text=_NOTHING_YET)
    text, rows = context_table(await service.report(context.session))
    return CommandReply(text=text, title="Context", rows=rows)


async def tell_insights(context: CommandContext) -> CommandReply:
    """Return the usage of all platforms for the owner, of the caller's platform for others."""
    wish = _DAYS_WISH.fullmatch(context.argument)
    days = whole_number(wish[1] if wish else context.argument or str(DAYS), low=1, high=MAX_DAYS)
    if days is None:
        return context.usage(f"days is a whole number from 1 to {MAX_DAYS}.")
    first = datetime.fromtimestamp(context.services.clock(), UTC) - timedelta(days=days - 1)
    tallies = await context.sessions.used(first.strftime("%Y-%m-%d"))
    if not context.caller.is_owner:
        tallies = [tally for tally in tallies if tally.platform == context.caller.source.platform]
    rows = tally_rows(tallies)
    return CommandReply(text=insights(tallies, days), title="Usage", rows=(TALLY_HEADINGS, *rows) if rows else ())


async def tell_caller(context: CommandContext) -> CommandReply:
    caller, session = context.caller, context.session
    who = f"user {caller.source.user}" if caller.source.user else "no user id"
    may = _MAY[caller.role]
    lines = [f"Platform {caller.source.platform}, {who}. You are {may}."]
    if session is not None:
        lines.append(f"This is session {session.id}.")
        if not caller.may_decide(session):
            lines.append("Another user started it and decides what may run in it.")
    if caller.key is not None:
        lines.append(f"Its key is {caller.key}.")
    return CommandReply(text="\n".join(lines))


async def tell_help(context: CommandContext) -> CommandReply:
    if context.parsed.word == "start":  # sent by Telegram's start button, perhaps with a link's payload
        return CommandReply(text=GREETING)
    narrow = context.caller.source.place is not None
    role, own = context.caller.role, context.services.user_commands
    added = [] if own is None else own.listed(role)
    return CommandReply(text=help_text(context.argument or None, narrow=narrow, role=role, added=added))


HANDLERS: dict[str, Handler] = {
    "status": tell_status,
    "why": tell_why,
    "usage": tell_usage,
    "context": tell_context,
    "insights": tell_insights,
    "whoami": tell_caller,
    "help": tell_help,
}
