"""Commands on what Hermes recalls: `/search`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from hermes.domain.ids import SessionId
from hermes.ports.search import Found
from hermes.services.commands.context import CommandContext, Handler
from hermes.services.commands.reply import CommandReply, refused
from hermes.services.recall.search_wish import parse_wish
from hermes.tools.session_scope import Scope

_HITS: Final = 10
_HEADINGS: Final = ("Session", "Date", "Who", "Message")


async def search(context: CommandContext) -> CommandReply:
    """Search what the caller may read here: the same as the agent's tool finds in this conversation."""
    stored = context.services.stored
    if stored is None:
        return refused("This daemon has no search index.")
    wish = parse_wish(context.argument, context.services.clock())
    if not wish.query:
        return context.usage("Give words to search for.")
    here = None if context.session is None else context.session.id
    scope = Scope(here, context.caller.role, context.who, stored)
    found = await scope.search(wish.query, limit=_HITS, only=wish.only, here_too=True)
    lines = [_line(hit, here) for hit in found.hits] or ["No message matches."]
    if found.index is not None:
        lines.append(f"The index is being built: {found.index.percent} % of the messages were searched.")
    if found.hits:
        lines.append("/resume ID continues a conversation.")
    rows = (_HEADINGS, *map(_row, found.hits)) if found.hits else ()
    return CommandReply(text="\n".join(lines), title="Search", rows=rows)


def _line(hit: Found, here: SessionId | None) -> str:
    session, day, role, snippet = _row(hit)
    return f"{'this conversation' if hit.session == here else session}, {day}, {role}: {snippet}"


def _row(hit: Found) -> tuple[str, str, str, str]:
    day = datetime.fromtimestamp(hit.at, UTC).strftime("%Y-%m-%d")
    return (hit.session, day, hit.role, hit.snippet)


HANDLERS: dict[str, Handler] = {"search": search}
