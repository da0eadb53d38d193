"""Whether a message arrived whose answer was lost. Each of ours says in its metadata what it is.

A message that shows a file cannot: it is known by the file's id, as long as we remember that, and else by its name
and size, among those since the message that is answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.adapters.slack.workspace import Workspace
from hermes.domain.types import OutboxMessage
from hermes.domain.values import dataclass

_EVENT = "hermes_reply"
_PAGE = 200
_MAX_PAGES = 25
_SKEW_S = 3600.0  # between Slack's clock and ours, where only ours can tell how far to look back


@dataclass(frozen=True, slots=True, kw_only=True)
class SentFile:
    """What is known of one that may have been shown."""

    name: str
    size_bytes: int | None  # None: ours is not there any more
    id: str  # empty: it was another daemon that sent it

    def is_shown_as(self, file: Mapping[str, Any]) -> bool:
        if self.id:
            return bool(file.get("id") == self.id)
        return file.get("name") == self.name and self.size_bytes in (None, file.get("size"))


def label(outgoing: OutboxMessage, part: int) -> dict[str, Any]:
    return {"event_type": _EVENT, "event_payload": {"obligation": outgoing.id, "part": part}}


async def find(
    workspace: Workspace, channel: str, outgoing: OutboxMessage, part: int, file: SentFile | None
) -> str | None:
    """The message's timestamp, or the id of the file it shows. Looks no further back than to what it answers."""
    client = workspace.client
    place = outgoing.place
    oldest = place.message or place.thread or f"{max(0.0, outgoing.at - _SKEW_S):.6f}"
    about: dict[str, Any] = {
        "channel": channel,
        "oldest": oldest,
        "inclusive": True,
        "include_all_metadata": True,
        "limit": _PAGE,
    }
    for _ in range(_MAX_PAGES):
        if place.thread:
            answer = await client.conversations_replies(ts=place.thread, **about)
        else:
            answer = await client.conversations_history(**about)
        for message in answer.get("messages") or ():
            if _is(message, outgoing, part):
                return str(message["ts"])
            if file is not None and message.get("user") == workspace.me.user:
                shown = (str(each["id"]) for each in message.get("files") or () if file.is_shown_as(each))
                if found := next((each for each in shown if each not in outgoing.sent), ""):
                    return found
        about["cursor"] = (answer.get("response_metadata") or {}).get("next_cursor")
        if not about["cursor"]:
            return None
    return None


def _is(message: Mapping[str, Any], outgoing: OutboxMessage, part: int) -> bool:
    metadata = message.get("metadata") or {}
    payload = metadata.get("event_payload") or {}
    return metadata.get("event_type") == _EVENT and (payload.get("obligation"), payload.get("part")) == (
        outgoing.id,
        part,
    )
