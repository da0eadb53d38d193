"""Whether a message in a group is meant for the bot, and what it says without the bot's name in front.

In a private chat everything is. In a group it is when the bot is mentioned or answered, when it is a command of
ours, or any with the bot's name, when it begins with a wake word, or where the bot may speak freely.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from hermes.adapters.chat.utf16 import between
from hermes.adapters.telegram.forward import is_forward
from hermes.domain.values import dataclass
from hermes.services.commands.registry import Parsed, Unknown, parse


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramAddressing:
    """When the bot feels addressed in groups."""

    require_mention: bool = True
    wake_words: tuple[str, ...] = ()
    free_response_chats: tuple[str, ...] = ()  # CHAT, or CHAT:THREAD for a single topic

    def in_moved(self, chat: str, former: str) -> TelegramAddressing:
        """What was said about a chat under its former id holds for it as well."""
        if former not in self.free_response_chats:
            return self
        return replace(self, free_response_chats=(*self.free_response_chats, chat))


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramIdentity:
    id: int
    username: str


def for_another_bot(text: str, me: TelegramIdentity) -> bool:
    """Whether it is a command with another bot's name."""
    found = re.match(r"/\w+@(\w+)", text)
    return bool(found and found[1].lower() != me.username.lower())


def is_addressed(message: Mapping[str, Any], text: str, me: TelegramIdentity, manners: TelegramAddressing) -> bool:
    chat = str(message["chat"]["id"])
    free = {chat, f"{chat}:{message.get('message_thread_id', '')}"} & set(manners.free_response_chats)
    if message["chat"]["type"] == "private" or _answers(message, me):
        return True
    if is_forward(message):  # whom its text mentions or commands is not the sender's choice
        return bool(not manners.require_mention or free)
    if _mentions(message, me):
        return True
    if isinstance(command := parse(text), Parsed | Unknown):  # an unknown one without a name is another bot's
        return isinstance(command, Parsed) or bool(command.bot)
    return bool(not manners.require_mention or free or _begins_with(text, manners.wake_words))


def without_name(text: str, me: TelegramIdentity) -> str:
    """`@bot what …` and `/new@bot …` as a person means them."""
    name = re.escape(me.username)
    text = re.sub(rf"^\s*@{name}\b[\s,:]*(?=\S)", "", text, flags=re.IGNORECASE)
    return re.sub(rf"^(/\w+)@{name}\b", r"\1", text, flags=re.IGNORECASE)


def _begins_with(text: str, words: tuple[str, ...]) -> bool:
    return any(re.match(rf"\W*{re.escape(word)}(?!\w)", text, re.IGNORECASE) for word in words)


def _answers(message: Mapping[str, Any], me: TelegramIdentity) -> bool:
    answered = message.get("reply_to_message") or {}
    # In a topic everything "answers" the message that opened it.
    return "forum_topic_created" not in answered and (answered.get("from") or {}).get("id") == me.id


def _mentions(message: Mapping[str, Any], me: TelegramIdentity) -> bool:
    for kind, covered, entity in _entities(message):
        if kind == "mention" and covered.lower() == f"@{me.username}".lower():
            return True
        if kind == "text_mention" and (entity.get("user") or {}).get("id") == me.id:
            return True
    return False


def _entities(message: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for text, entities in (("text", "entities"), ("caption", "caption_entities")):
        for entity in message.get(entities) or ():
            yield entity["type"], between(message.get(text) or "", entity["offset"], entity["length"]), entity
