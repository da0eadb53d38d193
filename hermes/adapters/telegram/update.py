"""From an update, as Telegram's JSON, to what a person did. Pure; what we do not understand is None.

The id is Telegram's update id together with the bot's, so that a second delivery is known for one, whatever became of
the first. The pictures of an album come as an update each and are one message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hermes.adapters.chat.utf16 import sound
from hermes.adapters.telegram.addressed import (
    TelegramAddressing,
    TelegramIdentity,
    for_another_bot,
    is_addressed,
    without_name,
)
from hermes.adapters.telegram.attachment import FILE_FIELDS, attachments_of, told_of
from hermes.adapters.telegram.forward import forward_of, is_forward
from hermes.adapters.telegram.keyboard import pressed
from hermes.domain.types import InboundKey, Place
from hermes.ports.chat import Foreign, ForeignKind, Inbound
from hermes.services.commands.registry import parse

NAME = "telegram"
KINDS = ("message", "edited_message", "callback_query")  # of updates that we ask for
_MAX_QUOTED = 300  # characters of what a message answers


def inbound_of(update: Mapping[str, Any], me: TelegramIdentity, manners: TelegramAddressing) -> Inbound | None:
    """What a person did, if it was meant for us."""
    key = key_of(update, me)
    if query := update.get("callback_query"):
        return _press(query, key)
    if message := update.get("message"):
        return _message(message, key, me, manners, edited=False)
    if (message := update.get("edited_message")) and not message.get("media_group_id"):
        return _message(message, key, me, manners, edited=True)  # of an album it would leave one picture
    return None


def key_of(update: Mapping[str, Any], me: TelegramIdentity) -> InboundKey:
    return InboundKey(f"{NAME}:{me.id}:{update['update_id']}")


def album_of(
    updates: Sequence[Mapping[str, Any]], me: TelegramIdentity, manners: TelegramAddressing
) -> Inbound | None:
    """One message of several, any of which may hold its text; its id is that one's, or else the first's."""
    spoken = next((update for update in updates if update["message"].get("caption")), updates[0])
    inbound = inbound_of(spoken, me, manners)
    if inbound is None:
        return None
    pieces = [(key_of(update, me), each) for update in updates for each in attachments_of(update["message"])]
    return replace(inbound, attachments=tuple(each for _, each in pieces), pieces=tuple(key for key, _ in pieces))


def is_urgent(update: Mapping[str, Any], me: TelegramIdentity) -> bool:
    """A button, or a command: they have to wait for no file."""
    message = update.get("message")
    if not isinstance(message, dict):
        return "callback_query" in update
    if is_forward(message):
        return False
    text = message.get("text") or message.get("caption")
    return isinstance(text, str) and parse(without_name(sound(text), me)) is not None


def has_file(update: Mapping[str, Any]) -> bool:
    message = update.get("message") or update.get("edited_message")
    return isinstance(message, dict) and any(name in message for name in FILE_FIELDS)


def moved_by(update: Mapping[str, Any]) -> tuple[str, str] | None:
    """The old and the new id of a group that became a supergroup, which both of them are told."""
    message = update.get("message") or {}
    here = str((message.get("chat") or {}).get("id", ""))
    if new := message.get("migrate_to_chat_id"):
        return here, str(new)
    if old := message.get("migrate_from_chat_id"):
        return str(old), here
    return None


def _message(
    message: Mapping[str, Any], key: InboundKey, me: TelegramIdentity, manners: TelegramAddressing, *, edited: bool
) -> Inbound | None:
    sender = message.get("from")
    forward = forward_of(message)
    text = "" if forward else sound(_said(message))
    foreign = (*forward, *told_of(message))
    attachments = attachments_of(message)
    if sender is None or sender.get("is_bot") or message["chat"]["type"] == "channel":
        return None
    if not (text.strip() or attachments or foreign):
        return None
    if for_another_bot(text, me) or not is_addressed(message, text, me, manners):
        return None
    words = without_name(text, me)
    return Inbound(
        id=key,
        place=_place(message),
        user=str(sender["id"]),
        user_name=_name(sender),
        text=words,
        foreign=foreign if words.startswith("/") else (*_quotation(message, me), *foreign),
        chat_type=_chat_type(message),
        chat_name=_title(message),
        edited=edited,
        attachments=attachments,
    )


def _press(query: Mapping[str, Any], key: InboundKey) -> Inbound | None:
    message = query.get("message")
    found = pressed(query.get("data") or "")
    if message is None or found is None:
        return None
    token, choice = found
    return Inbound(
        id=key,
        place=_place(message),
        user=str(query["from"]["id"]),
        user_name=_name(query["from"]),
        text=_label(message, query["data"]),
        chat_type=_chat_type(message),
        chat_name=_title(message),
        answers=token,
        choice=choice,
    )


def _said(message: Mapping[str, Any]) -> str:
    return str(message.get("text") or message.get("caption") or "")


def _quotation(message: Mapping[str, Any], me: TelegramIdentity) -> tuple[Foreign, ...]:
    """What it answers, unless that is what the bot said just before, and no passage of it was chosen."""
    answered = message.get("reply_to_message") or {}
    marked = (message.get("quote") or {}).get("text")  # a passage that the person has chosen
    said = marked or _said(answered)
    mine = (answered.get("from") or {}).get("id") == me.id
    # Ids in a chat count up: nothing was said in between.
    just_before = answered.get("message_id") == message["message_id"] - 1
    if not said or (mine and just_before and not marked):
        return ()
    shown = said if len(said) <= _MAX_QUOTED else said[: _MAX_QUOTED - 1] + "…"
    return (Foreign(kind=ForeignKind.OWN_QUOTE if mine else ForeignKind.QUOTE, text=sound(shown)),)


def _label(message: Mapping[str, Any], data: str) -> str:
    """What stood on the button; nothing, where the message is too old for Telegram to remember it."""
    for row in (message.get("reply_markup") or {}).get("inline_keyboard") or ():
        for button in row:
            if button.get("callback_data") == data:
                return str(button["text"])
    return ""


def _place(message: Mapping[str, Any]) -> Place:
    # Outside of topics, a thread is only a chain of answers.
    thread = str(message["message_thread_id"]) if message.get("is_topic_message") else ""
    return Place(platform=NAME, chat=str(message["chat"]["id"]), thread=thread, message=str(message["message_id"]))


def _chat_type(message: Mapping[str, Any]) -> str:
    if message["chat"]["type"] == "private":
        return "dm"  # also in a topic
    return "thread" if message.get("is_topic_message") else "group"


def _title(message: Mapping[str, Any]) -> str:
    """What a group is called; a private chat has no name but the person's."""
    return sound(str(message["chat"].get("title") or ""))


def _name(user: Mapping[str, Any]) -> str:
    full = " ".join(filter(None, (user.get("first_name"), user.get("last_name"))))
    return sound(full or user.get("username") or "")
