"""Parser of Slack events, commands and button presses. Pure; what is not for the bot gives None.

The inbound id consists of team, channel and timestamp. These are equal when Slack redelivers a message, and when it
reports one message as two events (`message` and `app_mention`). A mention in a channel starts a thread: the answer
goes there, and messages in it continue the conversation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from hermes.adapters.chat.utf16 import sound
from hermes.adapters.slack.address import NAME, chat_type, is_direct, place_of
from hermes.adapters.slack.command_sign import slash_text, with_slash
from hermes.adapters.slack.inbound.attachment import attachments_of
from hermes.adapters.slack.inbound.message_text import mentioned, mentions, readable
from hermes.adapters.slack.outbound.blocks import pressed
from hermes.adapters.slack.workspace import SlackIdentity
from hermes.domain.ids import InboundKey
from hermes.domain.values import dataclass, replace
from hermes.ports.chat import Foreign, ForeignKind, Inbound
from hermes.services.commands.registry import parse

_BY_PEOPLE = {"", "file_share", "me_message", "thread_broadcast"}  # subtypes of messages that people wrote
_SLACKBOT = "USLACKBOT"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackAddressing:
    """Rules for addressing the bot in channels."""

    require_mention: bool = True
    free_response_channels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedEvent:
    inbound: Inbound
    people: tuple[str, ...] = ()  # user ids that the text mentions as `@U1`
    respond_to: str = field(default="", repr=False)  # response URL for an ephemeral answer
    sure: bool = True  # False: in a thread without a mention; for us only if we take part there

    @property
    def in_thread(self) -> bool:
        """True if there may be earlier messages in its thread."""
        place = self.inbound.place
        return bool(place.thread) and place.thread != place.message and not self.inbound.answers

    @property
    def is_urgent(self) -> bool:
        """True for a button press or a command, which do not wait for files."""
        inbound = self.inbound
        return bool(inbound.answers) or (not inbound.forwarded and parse(inbound.text) is not None)


def team_of(payload: Mapping[str, Any]) -> str:
    """Return the team of the receiving app; in a shared channel the writer's team may differ."""
    for each in payload.get("authorizations") or ():
        if each.get("team_id"):
            return str(each["team_id"])
    team = payload.get("team")
    return str(payload.get("team_id") or (team.get("id") if isinstance(team, Mapping) else team) or "")


def channel_of(payload: Mapping[str, Any]) -> str:
    """Return the channel; may be empty."""
    channel = payload.get("channel")
    event = payload.get("event") or {}
    named = channel.get("id") if isinstance(channel, Mapping) else channel
    return str(named or payload.get("channel_id") or event.get("channel") or "")


def parse_event(
    kind: str, payload: Mapping[str, Any], identity: SlackIdentity, addressing: SlackAddressing
) -> ParsedEvent | None:
    """Parse a payload. `kind` is Socket Mode's: events_api, slash_commands or interactive."""
    match kind:
        case "events_api":
            return _event(payload.get("event") or {}, identity, addressing)
        case "slash_commands":
            return _slash(payload, identity)
        case "interactive" if payload.get("type") == "block_actions":
            return _press(payload, identity)
    return None


def _event(event: Mapping[str, Any], identity: SlackIdentity, addressing: SlackAddressing) -> ParsedEvent | None:
    if event.get("type") not in {"message", "app_mention"}:
        return None
    channel = str(event["channel"])
    if event.get("subtype") == "message_deleted":
        return _deleted(event, channel, identity, addressing)
    if event.get("subtype") == "message_changed":
        old, new = event.get("previous_message") or {}, event["message"]
        if old.get("text") == new.get("text"):
            return None  # a link preview or a reply count changed
        return _message(new, channel, identity, addressing, edit=str((new.get("edited") or event).get("ts")))
    return _message(event, channel, identity, addressing)


def _deleted(
    event: Mapping[str, Any], channel: str, identity: SlackIdentity, addressing: SlackAddressing
) -> ParsedEvent | None:
    old = event.get("previous_message")
    found = _message(old, channel, identity, addressing) if old else None
    if found is None:
        return None
    inbound = replace(found.inbound, id=InboundKey(f"{found.inbound.id}:deleted"), deleted=True, attachments=())
    return replace(found, inbound=inbound, people=())


def _message(
    message: Mapping[str, Any], channel: str, identity: SlackIdentity, addressing: SlackAddressing, *, edit: str = ""
) -> ParsedEvent | None:
    user = str(message.get("user") or "")
    if (
        message.get("subtype", "") not in _BY_PEOPLE
        or message.get("bot_id")
        or user in {"", identity.user, _SLACKBOT}
    ):
        return None
    said = str(message.get("text") or "")
    text = with_slash(readable(said, identity.user, identity.name))
    attachments = attachments_of(message, identity.team)
    foreign = _shared_messages(message, identity)
    called = mentions(said, identity.user)
    direct = is_direct(channel)
    free = not addressing.require_mention or channel in addressing.free_response_channels
    thread = _thread(message)
    if not (text.strip() or attachments or foreign) or not (direct or called or free or thread):
        return None
    ts = str(message["ts"])
    thread = thread or ("" if direct else ts)
    inbound = Inbound(
        id=InboundKey(f"{NAME}:{identity.team}:{channel}:{ts}" + (f":{edit}" if edit else "")),
        place=place_of(identity.team, channel, thread=thread, message=ts),
        user=user,
        text=text,
        chat_type=chat_type(channel, thread),
        edited=bool(edit),
        attachments=attachments,
        foreign=foreign,
    )
    people = tuple(each for each in mentioned(said) if each != identity.user)
    return ParsedEvent(inbound=inbound, people=people, sure=direct or called or free)


def _shared_messages(message: Mapping[str, Any], identity: SlackIdentity) -> tuple[Foreign, ...]:
    """Return messages that the person forwarded (Slack: shared) with this one. Link previews are not."""
    return tuple(
        Foreign(
            kind=ForeignKind.FORWARD,
            text=readable(str(each.get("text") or each.get("fallback") or ""), identity.user, identity.name),
            by=sound(str(each.get("author_name") or each.get("author_id") or "")),
        )
        for each in message.get("attachments") or ()
        if each.get("is_share") or each.get("is_msg_unfurl")
    )


def _thread(message: Mapping[str, Any]) -> str:
    """Return the thread of a message. The first message of a thread names itself and is not in it."""
    thread = str(message.get("thread_ts") or "")
    return thread if thread != message["ts"] else ""


def _slash(payload: Mapping[str, Any], identity: SlackIdentity) -> ParsedEvent:
    channel = str(payload["channel_id"])
    inbound = Inbound(
        id=InboundKey(f"{NAME}:{identity.team}:slash:{payload['trigger_id']}"),
        place=place_of(identity.team, channel),
        user=str(payload["user_id"]),
        user_name=str(payload.get("user_name") or ""),
        text=slash_text(str(payload["command"]), str(payload.get("text") or "")),
        chat_type=chat_type(channel, ""),
    )
    return ParsedEvent(inbound=inbound, respond_to=str(payload.get("response_url") or ""))


def _press(payload: Mapping[str, Any], identity: SlackIdentity) -> ParsedEvent | None:
    action = payload["actions"][0]
    found = pressed(str(action.get("value") or ""))
    channel = channel_of(payload)
    if found is None or not channel:
        return None
    token, number, choice = found
    box = payload.get("container") or {}
    alone = bool(box.get("is_ephemeral"))  # then Slack sends only the place of the message
    message = payload.get("message") or {"ts": box["message_ts"], "thread_ts": box.get("thread_ts")}
    thread = _thread(message)
    user = payload["user"]
    inbound = Inbound(
        id=InboundKey(f"{NAME}:{identity.team}:{channel}:{message['ts']}:{user['id']}:{action['action_ts']}"),
        place=place_of(identity.team, channel, thread=thread, message=str(message["ts"])),
        user=str(user["id"]),
        user_name=str(user.get("name") or user.get("username") or ""),
        text=choice,
        chat_type=chat_type(channel, thread),
        answers=token,
        choice=number,
    )
    return ParsedEvent(inbound=inbound, respond_to=str(payload.get("response_url") or "") if alone else "")
