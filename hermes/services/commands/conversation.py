"""Commands on a whole conversation: new, retry, undo, compress, branch, title."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from hermes.domain.errors import BadInputError
from hermes.domain.session.state import Session
from hermes.domain.text.title import MAX_TITLE, clean_title
from hermes.services.commands.context import CommandContext, Handler, whole_number
from hermes.services.commands.reply import NO, YES, CommandReply, refused
from hermes.services.commands.wording import UNTITLED, count, dropped, excerpt

MAX_UNDO = 100
MAX_BUTTON_TITLE = 25
NOW = "now"  # confirms like yes
MAX_TOPIC = 500
SUMMARY_WAIT_S = 3.0  # time to wait for a summary before replying
_NOTHING_YET = "There is no conversation here yet. Send a message first."


async def new(context: CommandContext) -> CommandReply:
    earlier = context.open
    if context.argument.lower() == NO:
        return CommandReply(text="Nothing was changed.")
    running = 0 if earlier is None else await _running_processes(context, earlier)
    confirmed, title = _parse_confirmation(context.argument, asked=running > 0)
    if running and not confirmed:
        return _ask_before_new(running, title)
    if earlier is not None:
        await context.sessions.end(earlier.id, context.typed, by=context.caller.source.place, who=context.who)
    before = context.session.id if context.session is not None else context.caller.session
    fresh = await context.sessions.begin(context.caller.source, session=before, key=context.caller.key, title=title)
    named = f" “{fresh.preferences.title}”" if fresh.preferences.title else ""
    lines = [f"New conversation{named}, session {fresh.id}."]
    if earlier is not None and earlier.turn is not None:
        lines.append("The running turn was stopped.")
    if earlier is not None and earlier.queue:
        lines.append(dropped(earlier))
    if earlier is not None:
        lines.append(f"The previous conversation is kept: /resume {earlier.id} continues it.")
    if running:
        what = "A background process" if running == 1 else f"{running} background processes"
        lines.append(
            f"{what} of the previous conversation still run{'s' if running == 1 else ''}: /processes shows more."
        )
    return CommandReply(text="\n".join(lines), session=fresh.id)


async def _running_processes(context: CommandContext, session: Session) -> int:
    return sum(view.ended_at is None for view in await context.services.processes.listed(session.id))


def _parse_confirmation(argument: str, *, asked: bool) -> tuple[bool, str]:
    """Return the confirmation and the title. A first word confirms only if the person was `asked`."""
    first, _, rest = argument.partition(" ")
    confirms = first.lower().rstrip(",") in (YES, NOW)
    if not confirms or (rest and not asked):
        return False, _title(argument)
    return True, _title(rest)


def _ask_before_new(running: int, title: str) -> CommandReply:
    many = running > 1
    what = f"{count(running, 'background process')}es" if many else "1 background process"
    text = (
        f"{what} of this conversation still run{'' if many else 's'}. A new conversation does not stop "
        f"{'them' if many else 'it'} and gets no notice of {'their' if many else 'its'} end. Start one anyway? "
        "/new now starts it; /processes shows more."
    )
    yes = f"{YES}, {title}" if title and len(title) <= MAX_BUTTON_TITLE else YES
    return CommandReply(text=text, choices=(yes, NO))


async def retry(context: CommandContext) -> CommandReply:
    if context.open is None:
        return refused(_NOTHING_YET)
    try:
        receipt = await context.sessions.retry(context.open.id, context.services.new_turn_id(), context.caller.source)
    except BadInputError as error:
        if error.code != "nothing_to_undo":
            raise
        return refused("There is no message to send again.")
    moved = receipt.session != context.open.id
    return CommandReply(
        text="The last message is sent again.", session=receipt.session if moved else None, receipt=receipt
    )


async def undo(context: CommandContext) -> CommandReply:
    wish, confirmed = _parse_undo(context.argument)
    if wish == NO:
        return CommandReply(text="Nothing was undone.")
    turns = whole_number(wish or "1", low=1, high=MAX_UNDO)
    if turns is None:
        return context.usage(f"n is a whole number from 1 to {MAX_UNDO}.")
    if context.open is None:
        return refused(_NOTHING_YET)
    if turns > 1 and context.caller.has_buttons and not confirmed:
        asked = f"Undo the last {turns} turns? The agent forgets them."
        return CommandReply(text=asked, choices=(f"{YES}, {turns} turns", NO))
    try:
        after = await context.sessions.undo(context.open.id, turns)
    except BadInputError as error:
        if error.code != "nothing_to_undo":
            raise
        few = "There is no turn" if turns == 1 else f"There are no {turns} turns"
        return refused(f"{few} to undo. Nothing was changed.")
    taken = "The last turn was" if turns == 1 else f"The last {turns} turns were"
    return context.reply(f"{taken} undone. {await _describe_last_message(context, after)}", after)


def _parse_undo(argument: str) -> tuple[str, bool]:
    """Split a typed argument or button text into the argument without its yes, and if there was one."""
    words = argument.lower().removesuffix(" turns").replace(",", " ").split()
    return " ".join(word for word in words if word != YES), YES in words


async def _describe_last_message(context: CommandContext, session: Session) -> str:
    last = await context.sessions.messages(session.id, None, 1)
    said = excerpt(last[-1].message) if last else ""
    return f"The last message is now: “{said}”" if said else "The conversation is empty."


async def compress(context: CommandContext) -> CommandReply:
    if context.open is None:
        return refused(_NOTHING_YET)
    topic = _on_one_line(context.argument, MAX_TOPIC)
    after = await _wait_for_summary(context, await context.sessions.compress(context.open.id, topic))
    if after.successor is not None:
        return context.reply(
            "The conversation continues from a summary. Earlier messages stay stored and searchable.", after
        )
    if not after.compressing:
        return refused(f"It was not compressed: {after.compression_problem or 'it was cancelled'}. Nothing was lost.")
    about = f" with focus on “{topic}”" if topic else ""
    return context.reply(
        f"A summary{about} is being made. The conversation continues from it; new messages wait.",
        after,
    )


async def _wait_for_summary(context: CommandContext, session: Session) -> Session:
    """Return the session once the summary has finished or failed, or after a short timeout."""
    with suppress(TimeoutError):
        async with asyncio.timeout(SUMMARY_WAIT_S):
            while session.compressing:
                await asyncio.sleep(0.05)
                session = (await context.sessions.view(session.id, exact=True)).session
    return session


async def branch(context: CommandContext) -> CommandReply:
    session, key = context.open, context.caller.key
    if session is None:
        return refused(_NOTHING_YET)
    earlier = session.preferences.title
    title = _title(context.argument) or (f"{earlier} (branch)" if earlier else "")
    own_key = key is not None and key == session.key  # else it was resumed from another chat, whose key stays
    child = await context.sessions.branch(session.id, title, move_key=own_key)
    if key is not None and not own_key:
        child = await context.sessions.resume(child.id, context.reason, key)
    return CommandReply(
        text=f"The conversation continues in a copy, session {child.id}.\n"
        f"The original is kept unchanged: /resume {session.id} continues it.",
        session=child.id,
    )


async def title(context: CommandContext) -> CommandReply:
    chosen = _title(context.argument)
    if not chosen:
        shown = context.open.preferences.title if context.open is not None else ""
        return CommandReply(text=f"The title is “{shown}”." if shown else f"{UNTITLED} Set one with /title TEXT.")
    session = await context.opened()
    after = await context.sessions.prefer(session.id, "title", chosen, context.reason)
    kept = after.preferences.title
    cut = f" It was cut at {MAX_TITLE} characters." if len(" ".join(context.argument.split())) > MAX_TITLE else ""
    return context.reply(f"The title is now “{kept}”.{cut}", after)


def _title(text: str) -> str:
    return clean_title(text)


def _on_one_line(text: str, chars_most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= chars_most else line[: chars_most - 1].rstrip() + "…"


def busy_with(session: Session) -> str:
    """Return why a command has to wait for the end of the running work; empty if it does not."""
    if session.compressing:
        return "The conversation is being compressed: wait, or start a new one with /new."
    if session.turn is not None or session.queue:
        waiting = f" {count(len(session.queue), 'message')} more waiting." if session.queue else ""
        return f"A turn is running: wait, or /stop it first.{waiting}"
    return ""


HANDLERS: dict[str, Handler] = {
    "new": new,
    "retry": retry,
    "undo": undo,
    "compress": compress,
    "branch": branch,
    "title": title,
}
