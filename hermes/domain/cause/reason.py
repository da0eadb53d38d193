"""Reasons in words for people, made from causes. The journal stores them beside the cause, for display only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hermes.domain.cause.cause import HoldCause, InterruptionCause, StopCause

_INTERRUPTIONS: Final[Mapping[InterruptionCause, str]] = {
    InterruptionCause.UNKNOWN: "it was interrupted",
    InterruptionCause.CRASH: "the daemon ended unexpectedly",
    InterruptionCause.ACTOR_CRASH: "the session's actor crashed",
    InterruptionCause.SHUTDOWN: "the daemon was stopped",
    InterruptionCause.RESTART: "the daemon restarted",
    InterruptionCause.SUSPENDED: "the session was suspended",
}
_HOLDS: Final[Mapping[HoldCause, str]] = {
    HoldCause.NONE: "",
    HoldCause.CONFIGURED: "",
    HoldCause.CRASHES: "the daemon keeps crashing",
}
NEW_MESSAGE = "a new message came"


def interruption_reason(cause: InterruptionCause, hold: HoldCause = HoldCause.NONE) -> str:
    """Return the reason of an interruption, for example "the daemon ended unexpectedly"."""
    return "; ".join(filter(None, (_INTERRUPTIONS[cause], _HOLDS[hold])))


def stop_message(cause: StopCause, reason: str) -> str:
    """Return the text of a stopped turn's failure."""
    match cause:
        case StopCause.SESSION_ENDED:
            return f"the session ended: {reason}"
        case StopCause.SESSION_DELETED:
            return "the session was deleted, and the message with it"
        case _:
            return f"stopped: {reason}"


def with_person(reason: str, who: str) -> str:
    """Return a reason with the person who gave it, for operators. Chats get the reason alone."""
    return f"{reason} by {who}" if who else reason
