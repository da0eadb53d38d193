"""Commands `/handoff` and `/platforms`: move a conversation to the home channel of a platform and back."""

from __future__ import annotations

from hermes.domain.access import home_channel
from hermes.domain.ids import SessionKey
from hermes.domain.session.protocol import HandOver
from hermes.domain.session.state import Session
from hermes.domain.source import Handover, Place
from hermes.services.commands.context import CommandContext, Handler
from hermes.services.commands.reply import CommandReply, refused

BACK = "back"
_NO_PLATFORM = "No chat platform is set up. `hermes setup` sets one up."


async def hand_off(context: CommandContext) -> CommandReply:
    session, wanted = context.open, context.argument.casefold()
    if not wanted:
        return CommandReply(text=await _choices(context))
    if session is None:
        return refused("There is no conversation here yet. The next message starts one.")
    if not context.caller.may_decide(session):
        return refused("Another user started this conversation and decides where it goes.")
    target = _origin(session) if wanted == BACK else await _home(context, wanted)
    if isinstance(target, CommandReply):
        return target
    key, place = target
    there = await context.sessions.bound(key)
    here = context.caller.source.place or session.place
    if there == session.id and session.place is not None and _is_same(session.place, place):
        return refused(f"This conversation is in {place.words} already.")
    replaced = None if there in (None, session.id) else there
    handover = Handover(
        key=key,
        place=place,
        reason=context.reason,
        origin=here,
        origin_key=context.caller.key or session.key,
        replaced=replaced,
    )
    await context.sessions.hand_over(session.id, HandOver(handover=handover))
    told_by_outbox = context.caller.source.place is not None
    return CommandReply(text="" if told_by_outbox else f"This conversation continues in {place.words}, too.")


def _origin(session: Session) -> tuple[SessionKey, Place] | CommandReply:
    handover = session.handover
    if handover is None:
        return refused("This conversation was not handed over. /handoff lists where it can go.")
    if handover.origin is None:
        return refused(f"It came from a terminal or an API client: `hermes chat -r {session.id}` continues it there.")
    return handover.origin_key, handover.origin


async def _home(context: CommandContext, platform: str) -> tuple[SessionKey, Place] | CommandReply:
    if platform not in _platforms(context):
        return refused(f"There is no chat platform {platform[:40]}. {await _choices(context)}")
    raw = await context.sessions.fact(home_channel.fact_of(platform))
    place, key = home_channel.decode(platform, raw), home_channel.key_in(raw)
    if place is None or key is None:
        return refused(
            f"{platform} has no home channel to go to. Send /sethome there, in the chat that shall get it."
        )
    return key, place


def _platforms(context: CommandContext) -> list[str]:
    return [each["name"] for each in context.services.platforms()]


async def _choices(context: CommandContext) -> str:
    names = _platforms(context)
    if not names:
        return _NO_PLATFORM
    ways = [f"/handoff {name}" for name in names]
    if context.session is not None and context.session.handover is not None:
        ways.append(f"/handoff {BACK}")
    return f"Move this conversation with {' or '.join(ways)}. It goes to the home channel there (/sethome)."


def _is_same(one: Place, other: Place) -> bool:
    return (one.platform, one.chat, one.thread) == (other.platform, other.chat, other.thread)


async def tell_platforms(context: CommandContext) -> CommandReply:
    platforms = context.services.platforms()
    if not platforms:
        return CommandReply(text=_NO_PLATFORM)
    lines = []
    for each in platforms:
        home = await context.sessions.fact(home_channel.fact_of(each["name"]))
        problem = each["problem"] if context.caller.role.approves and each["state"] != "running" else ""
        where = ", home channel set" if home is not None else ", no home channel (/sethome)"
        lines.append(f"{each['name']}: {each['state']}{where}{f'. {problem}' if problem else ''}")
    return CommandReply(text="\n".join(lines))


HANDLERS: dict[str, Handler] = {"handoff": hand_off, "platforms": tell_platforms}
