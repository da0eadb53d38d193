"""Chat messages as they are stored and sent."""

from __future__ import annotations

from enum import StrEnum
from typing import NewType

EncodedMessage = NewType("EncodedMessage", bytes)  # one chat message as UTF-8 JSON, encoded once


class MessageOrigin(StrEnum):
    """Author of a message in a transcript."""

    OTHER = ""  # the model or a tool
    PERSON = "person"
    PROCESS = "process"  # a background process reports; the message may begin a turn
    NOTE = "note"  # Hermes itself: a note to the model, or a summary
