"""Command `/sethome`: set the home channel of a chat platform."""

from __future__ import annotations

from hermes.domain.access import home_channel
from hermes.services.commands.context import CommandContext, Handler
from hermes.services.commands.reply import CommandReply, refused


async def set_home(context: CommandContext) -> CommandReply:
    place = context.caller.source.place
    if place is None:
        return refused("Only a chat can be a home channel. Send /sethome in the chat that shall get the notices.")
    await context.sessions.remember(
        home_channel.fact_of(place.platform), home_channel.encode(place, context.caller.key)
    )
    return CommandReply(
        text=f"This chat is now the home channel on {place.platform}. It gets notices that belong to no conversation."
    )


HANDLERS: dict[str, Handler] = {"sethome": set_home}
