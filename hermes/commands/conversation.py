"""Commands that change a conversation as a whole: begin, take back, shorten, copy, name."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from hermes.commands.errand import Errand, Handler, whole_number
from hermes.commands.reply import NO, YES, Reply, refused
from hermes.commands.wording import UNTITLED, count, dropped, excerpt
from hermes.errors import BadInputError
from hermes.types import Session

MAX_UNDO = 100
MAX_TITLE = 100
MAX_BUTTON_TITLE = 25
NOW = "now"  # confirms like yes
MAX_TOPIC = 500
PATIENCE_S = 3.0  # for a summary, before the reply says that it is being made
_NOTHING_YET = "There is no conversation here yet: say something first."


async def new(errand: Errand) -> Reply:
    earlier = errand.open
    if errand.argument.lower() == NO:
        return Reply(text="Nothing was changed.")
    running = 0 if earlier is None else await _running_processes(errand, earlier)
    sure, title = _sure(errand.argument, asked=running > 0)
    if running and not sure:
        return _ask_before_new(running, title)
    if earlier is not None:
        await errand.sessions.end(earlier.id, errand.reason, by=errand.caller.source.place)
    before = errand.session.id if errand.session is not None else errand.caller.session
    fresh = await errand.sessions.begin(errand.caller.source, session=before, key=errand.caller.key, title=title)
    named = f" “{fresh.preferences.title}”" if fresh.preferences.title else ""
    lines = [f"A fresh conversation{named}, session {fresh.id}."]
    if earlier is not None and earlier.turn is not None:
        lines.append("The turn that ran was stopped.")
    if earlier is not None and earlier.queue:
        lines.append(dropped(earlier))
    if earlier is not None:
        lines.append(f"The earlier one is kept: /resume {earlier.id} brings it back.")
    if running:
        what = "A background process" if running == 1 else f"{running} background processes"
        lines.append(f"{what} of it still run{'s' if running == 1 else ''}: /processes shows more.")
    return Reply(text="\n".join(lines), session=fresh.id)


async def _running_processes(errand: Errand, session: Session) -> int:
    return sum(view.ended_at is None for view in await errand.desk.processes.listed(session.id))


def _sure(argument: str, *, asked: bool) -> tuple[bool, str]:
    """Return whether the person has confirmed it, and the title. `asked`: only then a first word can confirm."""
    first, _, rest = argument.partition(" ")
    confirms = first.lower().rstrip(",") in (YES, NOW)
    if not confirms or (rest and not asked):
        return False, _title(argument)
    return True, _title(rest)


def _ask_before_new(running: int, title: str) -> Reply:
    many = running > 1
    what = f"{count(running, 'background process')}es" if many else "1 background process"
    text = (
        f"{what} of this conversation still run{'' if many else 's'}. A fresh conversation does not stop "
        f"{'them' if many else 'it'}, and hears nothing of {'their' if many else 'its'} end. Begin one all the same? "
        "/new now goes ahead; /processes shows more."
    )
    yes = f"{YES}, {title}" if title and len(title) <= MAX_BUTTON_TITLE else YES
    return Reply(text=text, choices=(yes, NO))


async def retry(errand: Errand) -> Reply:
    if errand.open is None:
        return refused(_NOTHING_YET)
    desk = errand.desk
    try:
        receipt = await errand.sessions.retry(errand.open.id, desk.new_turn_id(), errand.caller.source)
    except BadInputError as error:
        if error.code != "nothing_to_undo":
            raise
        return refused("There is no message here that could be sent again.")
    moved = receipt.session != errand.open.id
    return Reply(text="The last message is sent again.", session=receipt.session if moved else None, receipt=receipt)


async def undo(errand: Errand) -> Reply:
    wish, sure = _wish(errand.argument)
    if wish == NO:
        return Reply(text="Nothing was taken back.")
    turns = whole_number(wish or "1", low=1, high=MAX_UNDO)
    if turns is None:
        return errand.usage(f"n is a whole number from 1 to {MAX_UNDO}.")
    if errand.open is None:
        return refused(_NOTHING_YET)
    if turns > 1 and errand.caller.has_buttons and not sure:
        asked = f"Take back the last {turns} turns? The agent forgets what was said in them."
        return Reply(text=asked, choices=(f"{YES}, {turns} turns", NO))
    try:
        after = await errand.sessions.undo(errand.open.id, turns)
    except BadInputError as error:
        if error.code != "nothing_to_undo":
            raise
        few = "There are no turns here" if turns == 1 else f"There are no {turns} turns here"
        return refused(f"{few} to take back. Nothing was changed.")
    taken = "The last turn was" if turns == 1 else f"The last {turns} turns were"
    return errand.reply(f"{taken} taken back. {await _end_of(errand, after)}", after)


def _wish(argument: str) -> tuple[str, bool]:
    """What is left of it without the yes, and whether there was one: as typed, or as it stands on the button."""
    words = argument.lower().removesuffix(" turns").replace(",", " ").split()
    return " ".join(word for word in words if word != YES), YES in words


async def _end_of(errand: Errand, session: Session) -> str:
    last = await errand.sessions.messages(session.id, None, 1)
    said = excerpt(last[-1].message) if last else ""
    return f"The last thing said is now: “{said}”" if said else "Nothing is left of what was said."


async def compress(errand: Errand) -> Reply:
    if errand.open is None:
        return refused(_NOTHING_YET)
    topic = _on_one_line(errand.argument, MAX_TOPIC)
    after = await _soon_done(errand, await errand.sessions.compress(errand.open.id, topic))
    if after.successor is not None:
        return errand.reply(
            "The conversation goes on from a summary. What was said before is kept and can be found.", after
        )
    if not after.compressing:
        return refused(
            f"It was not compressed: {after.compression_problem or 'it was called off'}. Nothing was lost."
        )
    about = f" with most about “{topic}”" if topic else ""
    return errand.reply(
        f"A summary{about} is being made, and the conversation goes on from it. Messages wait until it is there.",
        after,
    )


async def _soon_done(errand: Errand, session: Session) -> Session:
    """The session when the summary has come to something, or after as long as a person likes to wait."""
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            while session.compressing:
                await asyncio.sleep(0.05)
                session = (await errand.sessions.view(session.id, exact=True)).session
    return session


async def branch(errand: Errand) -> Reply:
    session, key = errand.open, errand.caller.key
    if session is None:
        return refused(_NOTHING_YET)
    earlier = session.preferences.title
    title = _title(errand.argument) or (f"{earlier} (branch)" if earlier else "")
    own_key = key is not None and key == session.key  # else it was taken up from elsewhere, and that stays as it is
    child = await errand.sessions.branch(session.id, title, move_key=own_key)
    if key is not None and not own_key:
        child = await errand.sessions.resume(child.id, errand.reason, key)
    return Reply(
        text=f"This goes on in a copy, session {child.id}.\n"
        f"The conversation so far is kept as it is: /resume {session.id} brings it back.",
        session=child.id,
    )


async def title(errand: Errand) -> Reply:
    chosen = _title(errand.argument)
    if not chosen:
        shown = errand.open.preferences.title if errand.open is not None else ""
        return Reply(text=f"The title is “{shown}”." if shown else f"{UNTITLED} Set one with /title TEXT.")
    session = await errand.opened()
    after = await errand.sessions.prefer(session.id, "title", chosen, errand.reason)
    return errand.reply(f"The title is now “{chosen}”.", after)


def _title(text: str) -> str:
    return _on_one_line(text, MAX_TITLE)


def _on_one_line(text: str, chars_most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= chars_most else line[: chars_most - 1].rstrip() + "…"


def busy_with(session: Session) -> str:
    """Why a command that needs rest has to wait; empty: it need not."""
    if session.compressing:
        return "The conversation is being compressed: wait for that, or begin afresh with /new."
    if session.turn is not None or session.queue:
        waiting = f" {count(len(session.queue), 'message')} more waiting." if session.queue else ""
        return f"A turn is running: wait for it, or /stop first.{waiting}"
    return ""


HANDLERS: dict[str, Handler] = {
    "new": new,
    "retry": retry,
    "undo": undo,
    "compress": compress,
    "branch": branch,
    "title": title,
}
