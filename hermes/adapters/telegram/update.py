"""Parser of Telegram updates. Pure; an update of an unknown kind gives None.

The inbound id consists of the bot's id and Telegram's update id, so that a redelivery is recognised. The pictures of
an album are separate updates and one message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hermes.adapters.chat.utf16 import sound
from hermes.adapters.telegram.addressed import (
    TelegramAddressing,
    TelegramIdentity,
    for_another_bot,
    is_addressed,
    without_name,
)
from hermes.adapters.telegram.attachment import FILE_FIELDS, attachments_of, foreign_of
from hermes.adapters.telegram.forward import forward_of, is_forward
from hermes.adapters.telegram.keyboard import pressed
from hermes.domain.ids import InboundKey
from hermes.domain.source import Place
from hermes.domain.values import replace
from hermes.ports.chat import Foreign, ForeignKind, Inbound
from hermes.services.commands.registry import parse

NAME = "telegram"
KINDS = ("message", "edited_message", "callback_query")  # update kinds to ask for
_MAX_QUOTED = 300  # characters of a quoted message


def inbound_of(
    update: Mapping[str, Any], identity: TelegramIdentity, addressing: TelegramAddressing
) -> Inbound | None:
    """Return what a person did; None if it does not address the bot."""
    key = key_of(update, identity)
    if query := update.get("callback_query"):
        return _press(query, key)
    if message := update.get("message"):
        return _message(message, key, identity, addressing, edited=False)
    if (message := update.get("edited_message")) and not message.get("media_group_id"):
        return _message(
            message, key, identity, addressing, edited=True
        )  # an edited picture would replace the whole album
    return None


def key_of(update: Mapping[str, Any], identity: TelegramIdentity) -> InboundKey:
    return InboundKey(f"{NAME}:{identity.id}:{update['update_id']}")


def album_of(
    updates: Sequence[Mapping[str, Any]], identity: TelegramIdentity, addressing: TelegramAddressing
) -> Inbound | None:
    """Merge the updates of an album. The id is that of the update with the text, else of the first."""
    spoken = next((update for update in updates if update["message"].get("caption")), updates[0])
    inbound = inbound_of(spoken, identity, addressing)
    if inbound is None:
        return None
    pieces = [(key_of(update, identity), each) for update in updates for each in attachments_of(update["message"])]
    return replace(inbound, attachments=tuple(each for _, each in pieces), pieces=tuple(key for key, _ in pieces))


def is_urgent(update: Mapping[str, Any], identity: TelegramIdentity) -> bool:
    """Return True for a button press or a command, which do not wait for files."""
    message = update.get("message")
    if not isinstance(message, dict):
        return "callback_query" in update
    if is_forward(message):
        return False
    text = message.get("text") or message.get("caption")
    return isinstance(text, str) and parse(without_name(sound(text), identity)) is not None


def has_file(update: Mapping[str, Any]) -> bool:
    message = update.get("message") or update.get("edited_message")
    return isinstance(message, dict) and any(name in message for name in FILE_FIELDS)


def moved_by(update: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the old and new id of a group that became a supergroup. Both chats get such an update."""
    message = update.get("message") or {}
    here = str((message.get("chat") or {}).get("id", ""))
    if new := message.get("migrate_to_chat_id"):
        return here, str(new)
    if old := message.get("migrate_from_chat_id"):
        return str(old), here
    return None


def _message(
    message: Mapping[str, Any],
    key: InboundKey,
    identity: TelegramIdentity,
    addressing: TelegramAddressing,
    *,
    edited: bool,
) -> Inbound | None:
    sender = message.get("from")
    forward = forward_of(message)
    text = "" if forward else sound(_said(message))
    foreign = (*forward, *foreign_of(message))
    attachments = attachments_of(message)
    if sender is None or sender.get("is_bot") or message["chat"]["type"] == "channel":
        return None
    if not (text.strip() or attachments or foreign):
        return None
    if for_another_bot(text, identity) or not is_addressed(message, text, identity, addressing):
        return None
    words = without_name(text, identity)
    return Inbound(
        id=key,
        place=_place(message),
        user=str(sender["id"]),
        user_name=_name(sender),
        text=words,
        foreign=foreign if words.startswith("/") else (*_quotation(message, identity), *foreign),
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


def _quotation(message: Mapping[str, Any], identity: TelegramIdentity) -> tuple[Foreign, ...]:
    """Return the quoted message, unless it is the bot's last one and no passage was selected."""
    answered = message.get("reply_to_message") or {}
    marked = (message.get("quote") or {}).get("text")  # passage that the person selected
    said = marked or _said(answered)
    mine = (answered.get("from") or {}).get("id") == identity.id
    # Message ids in a chat count up: there is no message in between.
    just_before = answered.get("message_id") == message["message_id"] - 1
    if not said or (mine and just_before and not marked):
        return ()
    shown = said if len(said) <= _MAX_QUOTED else said[: _MAX_QUOTED - 1] + "…"
    return (Foreign(kind=ForeignKind.OWN_QUOTE if mine else ForeignKind.QUOTE, text=sound(shown)),)


def _label(message: Mapping[str, Any], data: str) -> str:
    """Return the button's label; empty if Telegram no longer has the message."""
    for row in (message.get("reply_markup") or {}).get("inline_keyboard") or ():
        for button in row:
            if button.get("callback_data") == data:
                return str(button["text"])
    return ""


def _place(message: Mapping[str, Any]) -> Place:
    # Outside of topics, a thread is only a chain of replies.
    thread = str(message["message_thread_id"]) if message.get("is_topic_message") else ""
    return Place(platform=NAME, chat=str(message["chat"]["id"]), thread=thread, message=str(message["message_id"]))


def _chat_type(message: Mapping[str, Any]) -> str:
    if message["chat"]["type"] == "private":
        return "dm"  # also in a topic
    return "thread" if message.get("is_topic_message") else "group"


def _title(message: Mapping[str, Any]) -> str:
    """Return the name of a group; a private chat has none."""
    return sound(str(message["chat"].get("title") or ""))


def _name(user: Mapping[str, Any]) -> str:
    full = " ".join(filter(None, (user.get("first_name"), user.get("last_name"))))
    return sound(full or user.get("username") or "")
