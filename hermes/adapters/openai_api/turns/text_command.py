"""Slash commands in the text of a message: which of them act, and their replies as answers of a turn.

A program may pass on the words of others, so `api.commands` decides: none, safe or all. Safe ones act on their own
conversation and give no lasting permission. Any other text that begins with a slash goes to the model.
"""

from __future__ import annotations

import json
from enum import StrEnum

from hermes.adapters.openai_api.turns.conversation_input import ConversationInput
from hermes.domain.ids import Seq, SessionId
from hermes.domain.read.views import TurnRecord
from hermes.domain.records import MessageReceived, TurnFinished
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Submission
from hermes.services.commands.registry import Parsed, parse
from hermes.services.commands.reply import CommandReply


class TextCommands(StrEnum):
    """Commands that act in the text of a message."""

    NONE = "none"
    SAFE = "safe"
    ALL = "all"


SAFE = frozenset(
    {
        *("new", "retry", "undo", "compress", "branch", "title", "stop", "queue", "steer", "approve", "deny"),
        *("busy", "model", "personality", "reasoning", "status", "why", "usage", "whoami", "help"),
    }
)
_STANDING = "always"  # argument of /approve that allows something in every conversation


def command_in(given: ConversationInput, allowed: TextCommands) -> Parsed | None:
    """Return the command in the new message; None if its text goes to the model."""
    text = given.new[-1].get("content")
    if allowed is TextCommands.NONE or given.results or not isinstance(text, str):
        return None
    command = parse(text)
    if not isinstance(command, Parsed):
        return None
    return command if allowed is TextCommands.ALL or _is_safe(command) else None


def _is_safe(command: Parsed) -> bool:
    return command.command.name in SAFE and _STANDING not in command.argument.lower().split()


def records_of(reply: CommandReply, submission: Submission, now: float, model: str) -> list[TurnRecord]:
    """Return a command and its reply as the records of a turn, which is not stored."""
    session = reply.session or submission.session or SessionId("")
    message = json.dumps({"role": "assistant", "content": reply.text}, ensure_ascii=False).encode(errors="replace")
    received = MessageReceived(
        at=now,
        turn=submission.turn,
        messages=submission.messages,
        source=submission.source,
        options=submission.options,
    )
    finished = TurnFinished(
        at=now, turn=submission.turn, message=EncodedMessage(message), model=model, finish_reason="stop"
    )
    return [
        TurnRecord(session=session, seq=Seq(0), record=received),
        TurnRecord(session=session, seq=Seq(1), record=finished),
    ]
