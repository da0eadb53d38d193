"""Finding earlier conversations and taking them up.

On a messaging surface people see and take only what they began themselves on that surface; whoever reaches the API,
the terminal or the admin socket owns this Hermes and sees everything.
"""

from __future__ import annotations

import asyncio
import re

from hermes.commands.conversation import busy_with
from hermes.commands.errand import Errand, Handler, whole_number
from hermes.commands.reply import Caller, Reply, refused
from hermes.commands.wording import SESSION_HEADINGS, UNTITLED, excerpt, session_lines, session_rows
from hermes.end_cause import was_compressed
from hermes.errors import UnknownSessionError
from hermes.types import Phase, Seq, Session, SessionId

SHOWN = 10
MAX_SHOWN = 50
_PAGE = 200
_LOOK_AT_MOST = 2000  # sessions, last active first
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")


async def sessions(errand: Errand) -> Reply:
    most = whole_number(errand.argument or str(SHOWN), low=1, high=MAX_SHOWN)
    if most is None:
        return errand.usage(f"n is a whole number from 1 to {MAX_SHOWN}.")
    return await _listed(errand, most)


async def resume(errand: Errand) -> Reply:
    wanted = errand.argument
    if not wanted:
        return await _listed(errand, SHOWN)
    current, caller = errand.session, errand.caller
    if current is not None and caller.key is not None and (problem := busy_with(current)):
        return refused(problem)
    found = await _find(errand, wanted)
    if isinstance(found, Reply):
        return found
    closed = found.phase in (Phase.ENDED, Phase.SUSPENDED)
    if current is not None and found.id == current.id and not closed:
        return Reply(text="This is the conversation that you are in.")
    if closed or caller.key is not None:
        found = await errand.sessions.resume(found.id, errand.reason, caller.key)
    return Reply(text=f"Taken up: {await _about(errand, found)}, session {found.id}.", session=found.id)


async def _listed(errand: Errand, most: int) -> Reply:
    found = (await _own(errand, most))[:most]
    if not found:
        return Reply(text="There are no earlier conversations.")
    errand.desk.shown.remember(errand.caller, [session.id for session in found])
    rows = await _rows(errand, found)
    current = errand.session.id if errand.session is not None else ""
    text = f"{session_lines(rows, current)}\n\n/resume NUMBER takes one of them up."
    return Reply(text=text, title="Sessions", rows=(SESSION_HEADINGS, *rows))


async def _rows(errand: Errand, found: list[Session]) -> tuple[tuple[str, ...], ...]:
    about = await asyncio.gather(*(_about(errand, session) for session in found))
    return session_rows(found, about, errand.desk.clock())


async def _about(errand: Errand, session: Session) -> str:
    """Its title, or how it began."""
    if session.preferences.title:
        return session.preferences.title
    first = await errand.sessions.messages(session.id, Seq(-1), 1, exact=True)
    return (excerpt(first[0].message) if first else "") or UNTITLED


async def _own(errand: Errand, most: int) -> list[Session]:
    """At least `most` of the caller's conversations, if there are so many; the last active first."""
    found: list[Session] = []
    after: SessionId | None = None
    for _ in range(_LOOK_AT_MOST // _PAGE):
        page = await errand.sessions.recent(_PAGE, after)
        found += [session for session in page if _is_worth_showing(session, errand.caller)]
        if len(found) >= most or len(page) < _PAGE:
            break
        after = page[-1].id
    return found


def _is_worth_showing(session: Session, caller: Caller) -> bool:
    """What was compressed is reached through its end; where nothing was said there is nothing to go on with."""
    return caller.may_take(session) and session.messages > 0 and not was_compressed(session)


# ---------------------------------------------------------------- which one is meant


async def _find(errand: Errand, wanted: str) -> Session | Reply:
    if (number := whole_number(wanted, low=1, high=MAX_SHOWN)) is not None:
        return await _by_number(errand, number)
    return await _by_id(errand, wanted) or await _by_title(errand, wanted)


async def _by_number(errand: Errand, number: int) -> Session | Reply:
    listed = errand.desk.shown.last(errand.caller)
    if not listed:
        listed = tuple(session.id for session in (await _own(errand, SHOWN))[:SHOWN])
    found = await _by_id(errand, listed[number - 1]) if number <= len(listed) else None
    return found or refused(f"There is no number {number} in the list; /sessions shows it.")


async def _by_id(errand: Errand, wanted: str) -> Session | None:
    """Of somebody else's session nobody learns that it is there."""
    if not _ID.fullmatch(wanted):
        return None
    try:
        found = await errand.sessions.conversation(SessionId(wanted))
    except UnknownSessionError:
        return None
    return found if errand.caller.may_take(found) else None


async def _by_title(errand: Errand, wanted: str) -> Session | Reply:
    own = [session for session in await _own(errand, _LOOK_AT_MOST) if session.preferences.title]
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
    errand.desk.shown.remember(errand.caller, [session.id for session in several])
    rows = await _rows(errand, several)
    text = f"Several fit. Take one by its number, with /resume NUMBER:\n{session_lines(rows, '')}"
    return Reply(text=text, ok=False, title="Sessions", rows=(SESSION_HEADINGS, *rows))


HANDLERS: dict[str, Handler] = {"sessions": sessions, "resume": resume}
