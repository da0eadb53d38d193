"""Slack addresses as places.

A chat is TEAM.CHANNEL, because a channel id alone does not identify the token to use. Threads and messages are
identified by timestamps.
"""

from __future__ import annotations

from hermes.domain.source import Place

NAME = "slack"


def place_of(team: str, channel: str, *, thread: str = "", message: str = "") -> Place:
    return Place(platform=NAME, chat=f"{team}.{channel}", thread=thread, message=message)


def team_and_channel(chat: str) -> tuple[str, str]:
    """Split a chat id. The team is empty if a person gave only a channel."""
    team, _, channel = chat.rpartition(".")
    return team, channel


def is_direct(channel: str) -> bool:
    """Return True for a direct message channel."""
    return channel.startswith("D")


def chat_type(channel: str, thread: str) -> str:
    if is_direct(channel):
        return "dm"  # also in a thread
    return "thread" if thread else "channel"
