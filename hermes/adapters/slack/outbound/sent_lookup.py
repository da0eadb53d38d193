"""Lookup of a sent message whose confirmation was lost, by its metadata.

A message with a file has no metadata: it is found by the file's id if known, else by name and size, among the
messages since the one that it answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.adapters.slack.workspace import Workspace
from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.values import dataclass

_EVENT = "hermes_reply"
_PAGE = 200
_MAX_PAGES = 25
_SKEW_S = 3600.0  # clock skew between Slack and us, if only our clock limits the search


@dataclass(frozen=True, slots=True, kw_only=True)
class SentFile:
    """Description of a file that may have been sent."""

    name: str
    size_bytes: int | None  # None: the local file is gone
    id: str  # empty if an earlier boot sent it

    def is_shown_as(self, file: Mapping[str, Any]) -> bool:
        if self.id:
            return bool(file.get("id") == self.id)
        return file.get("name") == self.name and self.size_bytes in (None, file.get("size"))


def label(outgoing: OutboxMessage, part: int) -> dict[str, Any]:
    return {"event_type": _EVENT, "event_payload": {"obligation": outgoing.id, "part": part}}


async def find(
    workspace: Workspace, channel: str, outgoing: OutboxMessage, part: int, file: SentFile | None
) -> str | None:
    """Return the message's timestamp, or the id of its file. Searches back to the message that it answers."""
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
            if file is not None and message.get("user") == workspace.identity.user:
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
