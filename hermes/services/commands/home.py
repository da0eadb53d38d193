"""Where Hermes says what belongs to no conversation: the home channel of each chat platform."""

from __future__ import annotations

from hermes.domain.access import home_channel
from hermes.services.commands.context import CommandContext, Handler
from hermes.services.commands.reply import CommandReply, refused


async def set_home(context: CommandContext) -> CommandReply:
    place = context.caller.source.place
    if place is None:
        return refused("Only a chat can be a home channel: say this where the notices are to go.")
    await context.sessions.remember(home_channel.fact_of(place.platform), home_channel.encode(place))
    return CommandReply(
        text=f"This is the home channel on {place.platform} now: what belongs to no conversation is told here."
    )


HANDLERS: dict[str, Handler] = {"sethome": set_home}
