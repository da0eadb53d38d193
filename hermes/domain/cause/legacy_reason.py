"""Codes for the texts that older stores hold instead of codes.

Versions without causes recognised these texts. New records carry codes, and nothing else may branch on a text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from hermes.domain.cause.cause import CompressionCause, EndCause, InterruptionCause, StopCause
from hermes.domain.turn.message import EncodedMessage, MessageOrigin
from hermes.domain.turn.turn_failure import Failure, FailureKind

_END_CAUSES: Final[Mapping[str, EndCause]] = {
    "compression": EndCause.COMPRESSION,
    "taken back to before its beginning": EndCause.TAKEN_BACK,
}
_COMPRESSION_CAUSES: Final[Mapping[str, CompressionCause]] = {
    "the context is nearly full": CompressionCause.FULL,
    "the context overflowed": CompressionCause.OVERFLOW,
    "somebody asked for it": CompressionCause.ASKED,
}
_INTERRUPTION_CAUSES: Final[Mapping[str, InterruptionCause]] = {  # by how the text begins
    "the daemon stopped without warning": InterruptionCause.CRASH,
    "the session's actor crashed": InterruptionCause.ACTOR_CRASH,
    "restart: ": InterruptionCause.RESTART,
    "shutdown: ": InterruptionCause.SHUTDOWN,
}
_STOP_CAUSES: Final[Mapping[str, StopCause]] = {  # by how the text begins
    "stopped: a new message came": StopCause.NEW_MESSAGE,
    "stopped: ": StopCause.ASKED,
    "the session ended: ": StopCause.SESSION_ENDED,
    "the session was deleted": StopCause.SESSION_DELETED,
}
_ORIGINS: Final[Mapping[str, MessageOrigin]] = {  # by how the message begins
    "[Note from the system:": MessageOrigin.NOTE,
    "[Summary of the earlier part": MessageOrigin.NOTE,
    "[Background process proc_": MessageOrigin.PROCESS,
}


def legacy_end_cause(reason: str) -> EndCause:
    return _END_CAUSES.get(reason, EndCause.UNKNOWN)


def legacy_interruption(reason: str) -> InterruptionCause:
    found = (cause for text, cause in _INTERRUPTION_CAUSES.items() if reason.startswith(text))
    return next(found, InterruptionCause.UNKNOWN)


def compression_cause(cause: CompressionCause, reason: str) -> CompressionCause:
    """Return the cause of a compression. An older store has the default cause and a text that differs from it."""
    return _COMPRESSION_CAUSES.get(reason, cause) if cause is CompressionCause.FULL else cause


def stop_cause(failure: Failure) -> StopCause:
    """Return why a turn was stopped; UNKNOWN if it failed for another cause."""
    if failure.kind is not FailureKind.CANCELLED or failure.stop is not StopCause.UNKNOWN:
        return failure.stop
    found = (cause for text, cause in _STOP_CAUSES.items() if failure.message.startswith(text))
    return next(found, StopCause.UNKNOWN)


def legacy_origin(message: EncodedMessage) -> MessageOrigin:
    """Return the origin of a message that a session took over from another one."""
    fields = json.loads(message)
    if fields.get("role") != "user":
        return MessageOrigin.OTHER
    content = str(fields.get("content"))
    return next((origin for text, origin in _ORIGINS.items() if content.startswith(text)), MessageOrigin.PERSON)
