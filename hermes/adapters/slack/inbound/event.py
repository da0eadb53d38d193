"""From what Slack delivers, as JSON, to what a person did. Pure; what is not for us is None.

The id is made of what Slack keeps the same when it delivers again, and when it reports one message as two events
(`message` and `app_mention`): the team, the channel and the message's timestamp. A mention in a channel begins a
thread: the answer goes there, and whoever writes there goes on with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from hermes.adapters.chat.utf16 import sound
from hermes.adapters.slack.address import NAME, chat_type, is_direct, place_of
from hermes.adapters.slack.command_sign import slash_text, with_slash
from hermes.adapters.slack.inbound.attachment import attachments_of
from hermes.adapters.slack.inbound.message_text import mentioned, mentions, readable
from hermes.adapters.slack.outbound.blocks import pressed
from hermes.adapters.slack.workspace import SlackIdentity
from hermes.domain.types import InboundKey
from hermes.domain.values import dataclass
from hermes.ports.chat import Foreign, ForeignKind, Inbound
from hermes.services.commands.registry import parse

_BY_PEOPLE = {"", "file_share", "me_message", "thread_broadcast"}  # subtypes of messages that a person wrote
_SLACKBOT = "USLACKBOT"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackAddressing:
    """When the bot feels addressed in channels."""

    require_mention: bool = True
    free_response_channels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedEvent:
    inbound: Inbound
    people: tuple[str, ...] = ()  # ids that stand in its text, as `@U1`
    respond_to: str = field(default="", repr=False)  # an address under which whoever did it is answered alone
    sure: bool = True  # False: said in a thread to nobody by name; it is for us only if we take part there

    @property
    def in_thread(self) -> bool:
        """Whether others may have spoken before it."""
        place = self.inbound.place
        return bool(place.thread) and place.thread != place.message and not self.inbound.answers

    @property
    def is_urgent(self) -> bool:
        """A button, or a command: they have to wait for no file."""
        inbound = self.inbound
        return bool(inbound.answers) or (not inbound.forwarded and parse(inbound.text) is not None)


def team_of(payload: Mapping[str, Any]) -> str:
    """Whose app was told, which in a shared channel need not be the writer's team."""
    for each in payload.get("authorizations") or ():
        if each.get("team_id"):
            return str(each["team_id"])
    team = payload.get("team")
    return str(payload.get("team_id") or (team.get("id") if isinstance(team, Mapping) else team) or "")


def channel_of(payload: Mapping[str, Any]) -> str:
    """Where it happened; empty: nowhere in particular."""
    channel = payload.get("channel")
    event = payload.get("event") or {}
    named = channel.get("id") if isinstance(channel, Mapping) else channel
    return str(named or payload.get("channel_id") or event.get("channel") or "")


def heard(kind: str, payload: Mapping[str, Any], me: SlackIdentity, manners: SlackAddressing) -> ParsedEvent | None:
    """`kind` as Socket Mode calls it: events_api, slash_commands or interactive."""
    match kind:
        case "events_api":
            return _event(payload.get("event") or {}, me, manners)
        case "slash_commands":
            return _slash(payload, me)
        case "interactive" if payload.get("type") == "block_actions":
            return _press(payload, me)
    return None


def _event(event: Mapping[str, Any], me: SlackIdentity, manners: SlackAddressing) -> ParsedEvent | None:
    if event.get("type") not in {"message", "app_mention"}:
        return None
    channel = str(event["channel"])
    if event.get("subtype") == "message_deleted":
        return _deleted(event, channel, me, manners)
    if event.get("subtype") == "message_changed":
        old, new = event.get("previous_message") or {}, event["message"]
        if old.get("text") == new.get("text"):
            return None  # Slack shows a link's preview, or counts answers
        return _message(new, channel, me, manners, edit=str((new.get("edited") or event).get("ts")))
    return _message(event, channel, me, manners)


def _deleted(
    event: Mapping[str, Any], channel: str, me: SlackIdentity, manners: SlackAddressing
) -> ParsedEvent | None:
    old = event.get("previous_message")
    found = _message(old, channel, me, manners) if old else None
    if found is None:
        return None
    inbound = replace(found.inbound, id=InboundKey(f"{found.inbound.id}:deleted"), deleted=True, attachments=())
    return replace(found, inbound=inbound, people=())


def _message(
    message: Mapping[str, Any], channel: str, me: SlackIdentity, manners: SlackAddressing, *, edit: str = ""
) -> ParsedEvent | None:
    user = str(message.get("user") or "")
    if message.get("subtype", "") not in _BY_PEOPLE or message.get("bot_id") or user in {"", me.user, _SLACKBOT}:
        return None
    said = str(message.get("text") or "")
    text = with_slash(readable(said, me.user, me.name))
    attachments = attachments_of(message, me.team)
    foreign = _shared_messages(message, me)
    called = mentions(said, me.user)
    direct = is_direct(channel)
    free = not manners.require_mention or channel in manners.free_response_channels
    thread = _thread(message)
    if not (text.strip() or attachments or foreign) or not (direct or called or free or thread):
        return None
    ts = str(message["ts"])
    thread = thread or ("" if direct else ts)
    inbound = Inbound(
        id=InboundKey(f"{NAME}:{me.team}:{channel}:{ts}" + (f":{edit}" if edit else "")),
        place=place_of(me.team, channel, thread=thread, message=ts),
        user=user,
        text=text,
        chat_type=chat_type(channel, thread),
        edited=bool(edit),
        attachments=attachments,
        foreign=foreign,
    )
    people = tuple(each for each in mentioned(said) if each != me.user)
    return ParsedEvent(inbound=inbound, people=people, sure=direct or called or free)


def _shared_messages(message: Mapping[str, Any], me: SlackIdentity) -> tuple[Foreign, ...]:
    """The messages that a person forwarded with this one: Slack calls that sharing. Previews of links are not."""
    return tuple(
        Foreign(
            kind=ForeignKind.FORWARD,
            text=readable(str(each.get("text") or each.get("fallback") or ""), me.user, me.name),
            by=sound(str(each.get("author_name") or each.get("author_id") or "")),
        )
        for each in message.get("attachments") or ()
        if each.get("is_share") or each.get("is_msg_unfurl")
    )


def _thread(message: Mapping[str, Any]) -> str:
    """The thread that it was said in. A message that somebody has answered since names itself: that is none."""
    thread = str(message.get("thread_ts") or "")
    return thread if thread != message["ts"] else ""


def _slash(payload: Mapping[str, Any], me: SlackIdentity) -> ParsedEvent:
    channel = str(payload["channel_id"])
    inbound = Inbound(
        id=InboundKey(f"{NAME}:{me.team}:slash:{payload['trigger_id']}"),
        place=place_of(me.team, channel),
        user=str(payload["user_id"]),
        user_name=str(payload.get("user_name") or ""),
        text=slash_text(str(payload["command"]), str(payload.get("text") or "")),
        chat_type=chat_type(channel, ""),
    )
    return ParsedEvent(inbound=inbound, respond_to=str(payload.get("response_url") or ""))


def _press(payload: Mapping[str, Any], me: SlackIdentity) -> ParsedEvent | None:
    action = payload["actions"][0]
    found = pressed(str(action.get("value") or ""))
    channel = channel_of(payload)
    if found is None or not channel:
        return None
    token, number, choice = found
    box = payload.get("container") or {}
    alone = bool(box.get("is_ephemeral"))  # then Slack tells nothing of the message but where it stands
    message = payload.get("message") or {"ts": box["message_ts"], "thread_ts": box.get("thread_ts")}
    thread = _thread(message)
    user = payload["user"]
    inbound = Inbound(
        id=InboundKey(f"{NAME}:{me.team}:{channel}:{message['ts']}:{user['id']}:{action['action_ts']}"),
        place=place_of(me.team, channel, thread=thread, message=str(message["ts"])),
        user=str(user["id"]),
        user_name=str(user.get("name") or user.get("username") or ""),
        text=choice,
        chat_type=chat_type(channel, thread),
        answers=token,
        choice=number,
    )
    return ParsedEvent(inbound=inbound, respond_to=str(payload.get("response_url") or "") if alone else "")
