"""Where something is said on Slack, as a place that all of Hermes understands.

A chat is TEAM.CHANNEL, because a channel's id says nothing about whose token opens it. A thread is the timestamp of
the message that began it, and so is a message.
"""

from __future__ import annotations

from hermes.domain.types import Place

NAME = "slack"


def place_of(team: str, channel: str, *, thread: str = "", message: str = "") -> Place:
    return Place(platform=NAME, chat=f"{team}.{channel}", thread=thread, message=message)


def team_and_channel(chat: str) -> tuple[str, str]:
    """The team is empty where a person named a channel only."""
    team, _, channel = chat.rpartition(".")
    return team, channel


def is_direct(channel: str) -> bool:
    """Whether nobody else is there."""
    return channel.startswith("D")


def chat_type(channel: str, thread: str) -> str:
    if is_direct(channel):
        return "dm"  # also in a thread
    return "thread" if thread else "channel"
