"""Commands that only tell something. They work at any time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hermes.commands.errand import Errand, Handler, whole_number
from hermes.commands.registry import GREETING, help_text
from hermes.commands.reply import Reply
from hermes.commands.wording import TALLY_HEADINGS, insights, status, tally_rows, usage
from hermes.role import Role

DAYS = 30
MAX_DAYS = 365
_MAY = {
    Role.OWNER: "the owner: every conversation is yours to see",
    Role.ADMIN: "an admin: you see your own conversations, and approve what others ask for",
    Role.USER: "a user: you see your own conversations",
    Role.GUEST: "a guest: you see your own conversations",
}
_NOTHING_YET = "There is no conversation here yet: the next message begins one."


async def tell_status(errand: Errand) -> Reply:
    if errand.session is None:
        return Reply(text=_NOTHING_YET)
    told = status(errand.session, errand.desk.default(), errand.desk.clock())
    return Reply(text="\n".join(filter(None, (told, errand.reset))))


async def tell_why(errand: Errand) -> Reply:
    return Reply(text=errand.why or _NOTHING_YET)


async def tell_usage(errand: Errand) -> Reply:
    if errand.session is None:
        return Reply(text=_NOTHING_YET)
    return Reply(text=usage(errand.session, errand.desk.default(), errand.desk.clock()))


async def tell_insights(errand: Errand) -> Reply:
    """All of it for the owner; of their own surface for others."""
    days = whole_number(errand.argument or str(DAYS), low=1, high=MAX_DAYS)
    if days is None:
        return errand.usage(f"days is a whole number from 1 to {MAX_DAYS}.")
    first = datetime.fromtimestamp(errand.desk.clock(), UTC) - timedelta(days=days - 1)
    tallies = await errand.sessions.used(first.strftime("%Y-%m-%d"))
    if not errand.caller.is_owner:
        tallies = [tally for tally in tallies if tally.platform == errand.caller.source.platform]
    rows = tally_rows(tallies)
    return Reply(text=insights(tallies, days), title="Usage", rows=(TALLY_HEADINGS, *rows) if rows else ())


async def tell_caller(errand: Errand) -> Reply:
    caller, session = errand.caller, errand.session
    who = f"user {caller.source.user}" if caller.source.user else "no name"
    may = _MAY[caller.role]
    lines = [f"You come from {caller.source.platform}, with {who}. To Hermes you are {may}."]
    if session is not None:
        lines.append(f"This is session {session.id}.")
        if not caller.may_decide(session):
            lines.append("Somebody else began it, and decides what may run in it.")
    if caller.key is not None:
        lines.append(f"Its address is {caller.key}.")
    return Reply(text="\n".join(lines))


async def tell_help(errand: Errand) -> Reply:
    if errand.parsed.word == "start":  # what Telegram's own first button says, perhaps with a link's payload
        return Reply(text=GREETING)
    narrow = errand.caller.source.place is not None
    return Reply(text=help_text(errand.argument or None, narrow=narrow, role=errand.caller.role))


HANDLERS: dict[str, Handler] = {
    "status": tell_status,
    "why": tell_why,
    "usage": tell_usage,
    "insights": tell_insights,
    "whoami": tell_caller,
    "help": tell_help,
}
