"""Commands that list and resume earlier conversations.

In chats people see only the conversations that they started there. Clients of the API, the terminal and the admin
socket act for the owner and see everything.
"""

from __future__ import annotations

import asyncio
import re

from hermes.domain.cause.end_cause import was_compressed
from hermes.domain.errors import UnknownSessionError
from hermes.domain.ids import Seq, SessionId
from hermes.domain.session.state import Phase, Session
from hermes.services.commands.context import CommandContext, Handler, whole_number
from hermes.services.commands.conversation import busy_with
from hermes.services.commands.reply import CommandCaller, CommandReply, refused
from hermes.services.commands.wording import SESSION_HEADINGS, UNTITLED, excerpt, session_lines, session_rows

SHOWN = 10
MAX_SHOWN = 50
_PAGE = 200
_MAX_READ = 2000  # sessions, last active first
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")


async def sessions(context: CommandContext) -> CommandReply:
    most = whole_number(context.argument or str(SHOWN), low=1, high=MAX_SHOWN)
    if most is None:
        return context.usage(f"n is a whole number from 1 to {MAX_SHOWN}.")
    return await _listed(context, most)


async def resume(context: CommandContext) -> CommandReply:
    wanted = context.argument
    if not wanted:
        return await _listed(context, SHOWN)
    current, caller = context.session, context.caller
    if current is not None and caller.key is not None and (problem := busy_with(current)):
        return refused(problem)
    found = await _find(context, wanted)
    if isinstance(found, CommandReply):
        return found
    closed = found.phase in (Phase.ENDED, Phase.SUSPENDED)
    if current is not None and found.id == current.id and not closed:
        return CommandReply(text="You are already in this conversation.")
    if closed or caller.key is not None:
        found = await context.sessions.resume(found.id, context.reason, caller.key)
    return CommandReply(text=f"Resumed: {await _about(context, found)}, session {found.id}.", session=found.id)


async def _listed(context: CommandContext, most: int) -> CommandReply:
    found = (await _own(context, most))[:most]
    if not found:
        return CommandReply(text="There are no earlier conversations.")
    context.services.shown.remember(context.caller, [session.id for session in found])
    rows = await _rows(context, found)
    current = context.session.id if context.session is not None else ""
    text = f"{session_lines(rows, current)}\n\n/resume NUMBER resumes one."
    return CommandReply(text=text, title="Sessions", rows=(SESSION_HEADINGS, *rows))


async def _rows(context: CommandContext, found: list[Session]) -> tuple[tuple[str, ...], ...]:
    about = await asyncio.gather(*(_about(context, session) for session in found))
    return session_rows(found, about, context.services.clock())


async def _about(context: CommandContext, session: Session) -> str:
    """Return the title, or the start of the first message."""
    if session.preferences.title:
        return session.preferences.title
    first = await context.sessions.messages(session.id, Seq(-1), 1, exact=True)
    return (excerpt(first[0].message) if first else "") or UNTITLED


async def _own(context: CommandContext, most: int) -> list[Session]:
    """Return at least `most` conversations of the caller if there are as many, last active first."""
    found: list[Session] = []
    after: SessionId | None = None
    for _ in range(_MAX_READ // _PAGE):
        page = await context.sessions.recent(_PAGE, after)
        found += [session for session in page if _is_listable(session, context.caller)]
        if len(found) >= most or len(page) < _PAGE:
            break
        after = page[-1].id
    return found


def _is_listable(session: Session, caller: CommandCaller) -> bool:
    """Exclude empty sessions, child sessions, and compressed ones, which are reached through their last successor."""
    is_own = session.assignment is None and session.messages > 0
    return is_own and caller.may_take(session) and not was_compressed(session)


# ---------------------------------------------------------------- lookup by number, id or title


async def _find(context: CommandContext, wanted: str) -> Session | CommandReply:
    if (number := whole_number(wanted, low=1, high=MAX_SHOWN)) is not None:
        return await _by_number(context, number)
    return await _by_id(context, wanted) or await _by_title(context, wanted)


async def _by_number(context: CommandContext, number: int) -> Session | CommandReply:
    listed = context.services.shown.last(context.caller)
    if not listed:
        listed = tuple(session.id for session in (await _own(context, SHOWN))[:SHOWN])
    found = await _by_id(context, listed[number - 1]) if number <= len(listed) else None
    return found or refused(f"There is no number {number} in the list. /sessions shows it.")


async def _by_id(context: CommandContext, wanted: str) -> Session | None:
    """Find a session by id. Does not reveal sessions of other people."""
    if not _ID.fullmatch(wanted):
        return None
    try:
        found = await context.sessions.conversation(SessionId(wanted))
    except UnknownSessionError:
        return None
    return found if context.caller.may_take(found) else None


async def _by_title(context: CommandContext, wanted: str) -> Session | CommandReply:
    own = [session for session in await _own(context, _MAX_READ) if session.preferences.title]
    meant = wanted.casefold()
    titles = [(session.preferences.title.casefold(), session) for session in own]
    fitting = (
        [session for name, session in titles if name == meant]
        or [session for name, session in titles if name.startswith(meant)]
        or [session for name, session in titles if meant in name]
    )
    if not fitting:
        return refused(f"You have no conversation with the id or title “{wanted[:100]}”. /sessions lists them.")
    if len(fitting) == 1:
        return fitting[0]
    several = fitting[:SHOWN]
    context.services.shown.remember(context.caller, [session.id for session in several])
    rows = await _rows(context, several)
    text = f"Several conversations match. Choose one with /resume NUMBER:\n{session_lines(rows, '')}"
    return CommandReply(text=text, ok=False, title="Sessions", rows=(SESSION_HEADINGS, *rows))


HANDLERS: dict[str, Handler] = {"sessions": sessions, "resume": resume}
