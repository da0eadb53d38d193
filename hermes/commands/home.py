"""Where Hermes says what belongs to no conversation: the home channel of each chat platform."""

from __future__ import annotations

from hermes import home_channel
from hermes.commands.errand import Errand, Handler
from hermes.commands.reply import Reply, refused


async def set_home(errand: Errand) -> Reply:
    place = errand.caller.source.place
    if place is None:
        return refused("Only a chat can be a home channel: say this where the notices are to go.")
    await errand.sessions.remember(home_channel.fact_of(place.platform), home_channel.encode(place))
    return Reply(
        text=f"This is the home channel on {place.platform} now: what belongs to no conversation is told here."
    )


HANDLERS: dict[str, Handler] = {"sethome": set_home}
