"""Whether each workspace still knows us. One that does not is shown, and is no reason to be deaf to the others."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress

from hermes.adapters.slack.failure import FAILURES, platform_error
from hermes.adapters.slack.workspace import SlackClient, Workspace
from hermes.domain.errors import PlatformError
from hermes.ports.chat import ChatEdge

ASK_EVERY_S = 60.0


async def ask_all(workspaces: Collection[Workspace], edge: ChatEdge) -> list[PlatformError]:
    """A small question to each. Returns what is wrong with those that do not take it."""
    problems = []
    for each in workspaces:
        part = f"workspace {each.me.team}"
        try:
            await each.client.auth_test()
        except FAILURES as error:
            problems.append(platform_error(error))
            edge.trouble(part, str(problems[-1]))
        else:
            edge.trouble(part, "")
    return problems


async def keep_asking(wire: SlackClient, edge: ChatEdge, *, every_s: float = ASK_EVERY_S) -> None:
    """Until cancelled. Over Socket Mode nothing else would tell that a token was revoked."""
    while True:
        await asyncio.sleep(every_s)
        with suppress(PlatformError):  # none lets us in: whoever listens has said so
            await ask_all((await wire.workspaces()).values(), edge)
