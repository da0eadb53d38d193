"""Commands `/handoff` and `/platforms`: move a conversation to another chat, or the home channel, and back."""

from __future__ import annotations

from hermes.domain.access import home_channel
from hermes.domain.ids import SessionKey
from hermes.domain.session.protocol import HandOver
from hermes.domain.session.state import Session
from hermes.domain.source import Handover, Place
from hermes.services.commands.chat_target import matching, usable_targets
from hermes.services.commands.context import CommandContext, Handler
from hermes.services.commands.reply import CommandReply, refused

BACK = "back"
_SHOWN = 10  # chats in a list
_NO_CHAT = "You have no other chat to move it to. Hermes knows a chat from the first message there."
_NO_PLATFORM = "No chat platform is set up. `hermes setup` sets one up."


async def hand_off(context: CommandContext) -> CommandReply:
    session, wanted = context.open, context.argument
    if not wanted:
        return CommandReply(text=await _choices(context))
    if session is None:
        return refused("There is no conversation here yet. The next message starts one.")
    caller = context.caller
    if not caller.role.approves and session.owner != caller.source.user:  # also where several people decide
        return refused("Another user started this conversation and decides where it goes.")
    target = _origin(session) if wanted.casefold() == BACK else await _target(context, wanted)
    if isinstance(target, CommandReply):
        return target
    key, place = target
    there = await context.sessions.bound(key)
    here = caller.source.place or session.place
    if there == session.id and session.place is not None and _is_same(session.place, place):
        return refused(f"This conversation is in {place.words} already.")
    replaced = None if there in (None, session.id) else there
    handover = Handover(
        key=key,
        place=place,
        reason=context.reason,
        origin=here,
        origin_key=caller.key or session.key,
        replaced=replaced,
    )
    await context.sessions.hand_over(session.id, HandOver(handover=handover))
    told_by_outbox = caller.source.place is not None
    return CommandReply(text="" if told_by_outbox else f"This conversation continues in {place.words}, too.")


def _origin(session: Session) -> tuple[SessionKey, Place] | CommandReply:
    handover = session.handover
    if handover is None:
        return refused("This conversation was not handed over. /handoff lists where it can go.")
    if handover.origin is None:
        return refused(f"It came from a terminal or an API client: `hermes chat -r {session.id}` continues it there.")
    return handover.origin_key, handover.origin


async def _target(context: CommandContext, wanted: str) -> tuple[SessionKey, Place] | CommandReply:
    platform, _, chat = wanted.partition(" ")
    platform = platform.casefold()
    if platform not in _platforms(context):
        return refused(f"There is no chat platform {platform[:40]}. {await _choices(context)}")
    return await _known_chat(context, platform, chat.strip()) if chat else await _home(context, platform)


async def _home(context: CommandContext, platform: str) -> tuple[SessionKey, Place] | CommandReply:
    if not context.caller.role.approves:
        return refused(f"The home channel of {platform} is for the owner and admins. {await _choices(context)}")
    raw = await context.sessions.fact(home_channel.fact_of(platform))
    place, key = home_channel.decode(platform, raw), home_channel.key_in(raw)
    if place is None or key is None:
        return refused(
            f"{platform} has no home channel to go to. Send /sethome there, in the chat that shall get it. "
            f"/handoff {platform} CHAT moves the conversation to another chat."
        )
    return key, place


async def _known_chat(context: CommandContext, platform: str, wanted: str) -> tuple[SessionKey, Place] | CommandReply:
    found = matching(await usable_targets(context, (platform,)), platform, wanted)
    own = f":{context.caller.source.user}"
    if len(found) > 1 and context.caller.source.platform == platform:  # one chat, in which each person has a session
        found = [each for each in found if each.key.endswith(own)] or found
    match found:
        case []:
            return refused(
                f"You have no chat “{wanted[:100]}” on {platform}. Hermes knows a chat from the first message there. "
                f"{await _choices(context)}"
            )
        case [target]:
            return target.key, target.place
        case _:
            names = "\n".join(f"  /handoff {platform} {each.tail}  {each.label}".rstrip() for each in found[:_SHOWN])
            return refused(f"Several conversations match. Choose one:\n{names}")


def _platforms(context: CommandContext) -> list[str]:
    return [each["name"] for each in context.services.platforms()]


async def _choices(context: CommandContext) -> str:
    names = _platforms(context)
    if not names:
        return _NO_PLATFORM
    homes = [f"/handoff {name}" for name in names] if context.caller.role.approves else []
    back = context.session is not None and context.session.handover is not None
    lines = [f"Move this conversation to a home channel (/sethome): {' or '.join(homes)}."] if homes else []
    targets = [each for each in await usable_targets(context, names) if each.key != context.caller.key]
    if targets:
        lines.append("Move it to a chat:" if homes else "Move this conversation to a chat:")
        lines += [f"  /handoff {each.place.platform} {each.name}  {each.label}".rstrip() for each in targets[:_SHOWN]]
    if back:
        lines.append(f"/handoff {BACK} returns it to where it came from.")
    return "\n".join(lines) or _NO_CHAT


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
