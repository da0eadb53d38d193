"""Health check of each workspace. One that fails is reported and does not affect the others."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress

from hermes.adapters.slack.failure import FAILURES, platform_error
from hermes.adapters.slack.workspace import SlackClient, Workspace
from hermes.domain.errors import PlatformError
from hermes.ports.chat import ChatIntake

ASK_EVERY_S = 60.0


async def ask_all(workspaces: Collection[Workspace], chat_intake: ChatIntake) -> list[PlatformError]:
    """Call auth.test in each workspace. Returns the errors."""
    problems = []
    for each in workspaces:
        part = f"workspace {each.identity.team}"
        try:
            await each.client.auth_test()
        except FAILURES as error:
            problems.append(platform_error(error))
            chat_intake.trouble(part, str(problems[-1]))
        else:
            chat_intake.trouble(part, "")
    return problems


async def keep_asking(client: SlackClient, chat_intake: ChatIntake, *, every_s: float = ASK_EVERY_S) -> None:
    """Check until cancelled. With Socket Mode nothing else would detect a revoked token."""
    while True:
        await asyncio.sleep(every_s)
        with suppress(PlatformError):  # all failed: reported elsewhere
            await ask_all((await client.workspaces()).values(), chat_intake)
