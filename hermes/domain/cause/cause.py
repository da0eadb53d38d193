"""Causes of what happens to sessions and turns. The reason beside a cause is text for people and decides nothing."""

from __future__ import annotations

from enum import StrEnum


class EndCause(StrEnum):
    """Cause of a session's end. The reason beside it is free text and decides nothing."""

    UNKNOWN = ""  # written by a version that kept the reason only
    ASKED = "asked"  # by a person, or by a program for one
    COMPRESSION = "compression"  # the conversation goes on from a summary
    TAKEN_BACK = "taken_back"  # the conversation goes on from before its beginning
    RESET = "reset"
    DONE = "done"  # a child session, after its work
    EXPIRED = "expired"  # unused for so long that it is deleted


class InterruptionCause(StrEnum):
    """Cause of an interrupted turn. The reason beside it is free text and decides nothing."""

    UNKNOWN = ""  # written by a version that stored the reason only
    CRASH = "crash"  # the daemon ended unexpectedly
    ACTOR_CRASH = "actor_crash"
    SHUTDOWN = "shutdown"
    RESTART = "restart"
    SUSPENDED = "suspended"  # an operator suspended the session


class HoldCause(StrEnum):
    """Cause why an interrupted turn waits for the person's next message."""

    NONE = ""  # it continues without a message
    CONFIGURED = "configured"  # by `resume.when`
    CRASHES = "crashes"  # the daemon crashes repeatedly


class SuspendCause(StrEnum):
    """Cause of a session's suspension."""

    UNKNOWN = ""  # written by a version that stored the reason only
    ASKED = "asked"
    INTERRUPTIONS = "interruptions"  # too many in a row
    IMPORTED = "imported"  # its work was open when it was exported


class StopCause(StrEnum):
    """Cause of a turn's stop."""

    UNKNOWN = ""  # the turn was not stopped, or a version without causes stored it
    ASKED = "asked"
    NEW_MESSAGE = "new_message"
    SESSION_ENDED = "session_ended"
    SESSION_DELETED = "session_deleted"


class CompressionCause(StrEnum):
    """Cause of a compression."""

    FULL = "full"  # the context is nearly full
    OVERFLOW = "overflow"  # a turn no longer fits
    ASKED = "asked"  # a person wants it


class CompressionEnd(StrEnum):
    """End of a compression that changed nothing."""

    FAILED = "failed"
    STOPPED = "stopped"  # by a person
    INTERRUPTED = "interrupted"  # the daemon stopped
