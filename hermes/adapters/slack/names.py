"""Display names of Slack users, fetched when needed and cached.

A lookup has a short timeout. Without a name, the user id is used.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Any

from loguru import logger

from hermes.adapters.chat.utf16 import sound
from hermes.adapters.slack.address import is_direct, team_and_channel
from hermes.adapters.slack.failure import FAILURES, code_of, explain, wait_of
from hermes.adapters.slack.workspace import Workspace
from hermes.domain.source import Place

_MAX_REMEMBERED = 4096
_MAX_ASKED = 30  # per message
_LOOKUP_TIMEOUT_S = 1.0  # Slack wants an acknowledgement within three seconds
_MAX_CHARACTERS = 80


async def channel_name(workspaces: Mapping[str, Workspace], place: Place) -> str:
    """Return the name of a channel; empty for a direct message, and if Slack does not tell."""
    team, channel = team_and_channel(place.chat)
    workspace = workspaces.get(team) or next(iter(workspaces.values()), None)
    if workspace is None or is_direct(channel):
        return ""
    try:
        found = (await workspace.client.conversations_info(channel=channel)).get("channel")
    except FAILURES as error:
        logger.debug("slack: could not get the name of channel {}: {}", channel, explain(error))
        return ""
    name = found.get("name") if isinstance(found, dict) else ""
    return sound("".join(each for each in str(name or "") if each.isprintable())[:_MAX_CHARACTERS])


class UserNames:
    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}  # by team and user id; the id itself if there is no name

    async def of(self, workspace: Workspace, users: Iterable[str]) -> Mapping[str, str]:
        """Return the names by user id, as many as are known within the timeout."""
        team = workspace.identity.team
        wanted = list(dict.fromkeys(users))
        unknown = [user for user in wanted if (team, user) not in self._known][:_MAX_ASKED]
        if unknown:
            asking = [asyncio.create_task(self._ask(workspace, user), name="slack name") for user in unknown]
            try:
                await asyncio.wait(asking, timeout=_LOOKUP_TIMEOUT_S)
            finally:
                for task in asking:
                    task.cancel()
                await asyncio.gather(*asking, return_exceptions=True)
        return {user: self._known[team, user] for user in wanted if (team, user) in self._known}

    async def _ask(self, workspace: Workspace, user: str) -> None:
        try:
            name = _name((await workspace.client.users_info(user=user)).get("user"))
        except FAILURES as error:
            logger.debug("slack: could not get the name of user {}: {}", user, explain(error))
            if not code_of(error) or wait_of(error) is not None:
                return  # try again later
            name = ""
        if len(self._known) >= _MAX_REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[workspace.identity.team, user] = name or user


def with_names(text: str, names: Mapping[str, str]) -> str:
    """Replace `@U1` with `@Ann`."""
    if not names:
        return text
    ids = "|".join(map(re.escape, names))
    return re.sub(rf"@({ids})\b", lambda found: f"@{names[found[1]]}", text)


def _name(user: Any) -> str:
    """Return the display name without line breaks and brackets, so that it cannot imitate a label."""
    if not isinstance(user, dict):
        return ""
    profile = user.get("profile") or {}
    found = profile.get("display_name") or profile.get("real_name") or user.get("name") or ""
    return sound("".join(each for each in str(found) if each.isprintable() and each not in "[]")[:_MAX_CHARACTERS])
