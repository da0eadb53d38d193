"""Check if a message in a group addresses the bot, and remove the bot's name from its start.

In a private chat every message does. In a group it must mention the bot or reply to it, be a known command or any
command with the bot's name, start with a wake word, or be in a free response chat.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hermes.adapters.chat.utf16 import between
from hermes.adapters.telegram.forward import is_forward
from hermes.domain.values import dataclass, replace
from hermes.services.commands.registry import Parsed, Unknown, parse


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramAddressing:
    """Rules for addressing the bot in groups."""

    require_mention: bool = True
    wake_words: tuple[str, ...] = ()
    free_response_chats: tuple[str, ...] = ()  # CHAT, or CHAT:THREAD for a single topic

    def in_moved(self, chat: str, former: str) -> TelegramAddressing:
        """Apply the rules of a chat's former id to its new id, too."""
        if former not in self.free_response_chats:
            return self
        return replace(self, free_response_chats=(*self.free_response_chats, chat))


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramIdentity:
    id: int
    username: str


def for_another_bot(text: str, identity: TelegramIdentity) -> bool:
    """Return True for a command with another bot's name."""
    found = re.match(r"/\w+@(\w+)", text)
    return bool(found and found[1].lower() != identity.username.lower())


def is_addressed(
    message: Mapping[str, Any], text: str, identity: TelegramIdentity, addressing: TelegramAddressing
) -> bool:
    chat = str(message["chat"]["id"])
    free = {chat, f"{chat}:{message.get('message_thread_id', '')}"} & set(addressing.free_response_chats)
    if message["chat"]["type"] == "private" or _answers(message, identity):
        return True
    if is_forward(message):  # the sender did not write its mentions and commands
        return bool(not addressing.require_mention or free)
    if _mentions(message, identity):
        return True
    if isinstance(
        command := parse(text), Parsed | Unknown
    ):  # an unknown command without a name may be for another bot
        return isinstance(command, Parsed) or bool(command.bot)
    return bool(not addressing.require_mention or free or _begins_with(text, addressing.wake_words))


def without_name(text: str, identity: TelegramIdentity) -> str:
    """Remove the bot's name: `@bot what …` and `/new@bot …`."""
    name = re.escape(identity.username)
    text = re.sub(rf"^\s*@{name}\b[\s,:]*(?=\S)", "", text, flags=re.IGNORECASE)
    return re.sub(rf"^(/\w+)@{name}\b", r"\1", text, flags=re.IGNORECASE)


def _begins_with(text: str, words: tuple[str, ...]) -> bool:
    return any(re.match(rf"\W*{re.escape(word)}(?!\w)", text, re.IGNORECASE) for word in words)


def _answers(message: Mapping[str, Any], identity: TelegramIdentity) -> bool:
    answered = message.get("reply_to_message") or {}
    # In a topic every message is a reply to the one that opened it.
    return "forum_topic_created" not in answered and (answered.get("from") or {}).get("id") == identity.id


def _mentions(message: Mapping[str, Any], identity: TelegramIdentity) -> bool:
    for kind, covered, entity in _entities(message):
        if kind == "mention" and covered.lower() == f"@{identity.username}".lower():
            return True
        if kind == "text_mention" and (entity.get("user") or {}).get("id") == identity.id:
            return True
    return False


def _entities(message: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for text, entities in (("text", "entities"), ("caption", "caption_entities")):
        for entity in message.get(entities) or ():
            yield entity["type"], between(message.get(text) or "", entity["offset"], entity["length"]), entity
