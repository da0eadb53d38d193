"""Commands on what Hermes recalls: `/search` and `/profile`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from hermes.domain.access.role import OWNER_SURFACES
from hermes.domain.change import ChangeAuthor
from hermes.domain.ids import SessionId
from hermes.domain.memory.scope import OWNER_SCOPE, MemoryScope, scope_in
from hermes.domain.profile.belief import Belief
from hermes.ports.memory import ChangeOrigin
from hermes.ports.search import Found
from hermes.services.commands.context import CommandContext, Handler
from hermes.services.commands.reply import CommandReply, refused
from hermes.services.profile.profile_service import ProfileService
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
    return (hit.session, _day(hit.at), hit.role, hit.snippet)


# ---------------------------------------------------------------- what is believed about the caller


async def tell_profile(context: CommandContext) -> CommandReply:
    """Show or forget beliefs about the caller: nobody sees those about another person."""
    profile, scope = context.services.profile, _own_scope(context)
    if profile is None or not profile.settings.is_on:
        return refused("The profile is off. The owner turns it on with profile.provider.")
    if scope is None:
        return refused("There is no profile in this conversation. Ask in a private chat.")
    word, _, rest = context.argument.partition(" ")
    if word == "forget":
        if not rest.strip():
            return context.usage("Give the number of the belief, or all.")
        return await _forgotten(context, profile, scope, rest.strip())
    beliefs = await profile.beliefs(scope)
    if word:
        return _explained(beliefs, word)
    held = [each for each in beliefs if each.is_held]
    lines = [_belief(each) for each in held] or ["Nothing is believed about you yet."]
    hint = ["/profile N shows why, /profile forget N forgets it."] if held else []
    return CommandReply(text="\n".join([*lines, *hint]))


def _own_scope(context: CommandContext) -> MemoryScope | None:
    """Return the scope of the caller; None where others read the answer, or nothing may be learned."""
    profile, session, caller = context.services.profile, context.session, context.caller
    if profile is None:
        return None
    if session is None:
        is_owner = caller.is_owner and caller.source.platform in OWNER_SURFACES
        return profile.scope(OWNER_SCOPE) if is_owner and not caller.source.user else None
    kind = session.company.kind if session.company is not None else ""
    if kind not in ("", "dm"):
        return None
    return profile.scope(scope_in(session, caller.role, context.who))


async def _forgotten(
    context: CommandContext, profile: ProfileService, scope: MemoryScope, wanted: str
) -> CommandReply:
    origin = ChangeOrigin(
        author=ChangeAuthor.PERSON,
        operation=f"forget:{context.services.new_turn_id()}",
        by=context.who,
        session="" if context.session is None else context.session.id,
    )
    gone = await profile.forget(scope, None if wanted == "all" else wanted, origin)
    texts = "\n".join(f"- {each.text}" for each in gone)
    return CommandReply(text=f"Forgotten:\n{texts}" if gone else "There was nothing to forget.")


def _explained(beliefs: Sequence[Belief], wanted: str) -> CommandReply:
    found = next((each for each in beliefs if each.id == wanted), None)
    if found is None:
        return refused(f"There is no belief {wanted[:20]}.")
    lines = [_belief(found)]
    lines += [f"“{each.quote}” ({_day(each.at)}, session {each.session})" for each in found.evidence]
    if found.superseded_by:
        lines.append(f"No longer held: {found.superseded_by} replaced it.")
    lines += [f"It replaced {each.id}: {each.text}" for each in beliefs if each.superseded_by == found.id]
    return CommandReply(text="\n".join(lines))


def _belief(belief: Belief) -> str:
    inferred = ", inferred" if belief.inferred else ""
    return f"{belief.id}. {belief.text} ({belief.confidence:.0%}{inferred}, {_day(belief.at)})"


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


HANDLERS: dict[str, Handler] = {"search": search, "profile": tell_profile}
