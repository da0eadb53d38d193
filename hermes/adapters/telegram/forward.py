"""Forwarded messages on Telegram and their authors. Pure.

A message sent via an inline bot counts as forwarded: the bot wrote its text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.adapters.chat.utf16 import sound
from hermes.ports.chat import Foreign, ForeignKind

_SIGNS = (
    "forward_origin",
    "forward_date",  # servers before Bot API 7.0
    "forward_from",
    "forward_from_chat",
    "forward_sender_name",
    "is_automatic_forward",
    "via_bot",
)


def is_forward(message: Mapping[str, Any]) -> bool:
    return any(message.get(sign) for sign in _SIGNS)


def forward_of(message: Mapping[str, Any]) -> tuple[Foreign, ...]:
    """Return the text or caption of a forwarded message, which may be empty; nothing for other messages."""
    if not is_forward(message):
        return ()
    text = str(message.get("text") or message.get("caption") or "")
    return (Foreign(kind=ForeignKind.FORWARD, text=sound(text), by=sound(_author(message))),)


def _author(message: Mapping[str, Any]) -> str:
    origin = message.get("forward_origin") or {}
    person = origin.get("sender_user") or message.get("forward_from") or message.get("via_bot")
    chat = origin.get("sender_chat") or origin.get("chat") or message.get("forward_from_chat")
    if hidden := origin.get("sender_user_name") or message.get("forward_sender_name"):
        return str(hidden)
    if person:
        full = " ".join(filter(None, (person.get("first_name"), person.get("last_name"))))
        return str(full or person.get("username") or "")
    return str((chat or {}).get("title") or "")
