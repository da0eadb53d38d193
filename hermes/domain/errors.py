"""Every error that Hermes raises on purpose. Each class has a stable `code`; docs/errors.md lists them.

HermesError
 ├── ConfigError               the configuration cannot be used (exit 78)
 ├── HomeError                 the home directory cannot be used (exit 78)
 ├── AlreadyRunningError       another daemon owns this home (exit 75)
 ├── NotRunningError           no daemon answers on this home
 ├── StorageError
 │    ├── StorageFullError     no space: nothing was written, reads go on
 │    ├── StorageFailedError   the disk cannot be trusted any more (exit 74)
 │    ├── StorageFormatError   written by a newer Hermes, or not by Hermes (exit 78)
 │    ├── BadRowError          a session's row does not match its checksum
 │    ├── SequenceConflictError, StaleOwnerError   another writer wrote first
 │    ├── AlreadySeenError     this inbound id was accepted before
 │    └── ChangeKnownError     this change of something learned was stored before
 ├── RefusedError              the message was not accepted; nothing was stored
 │    ├── BadInputError        the message is invalid
 │    │    └── SessionInUseError  not deleted: it was used meanwhile
 │    ├── BusyError            try again later
 │    │    └── QueueFullError  the queue of this session is full
 │    ├── StoppingError        the daemon is stopping
 │    ├── SessionParkedError   the session crashed too often
 │    ├── SessionClosedError   the session has ended, and automatic messages start no new one
 │    └── SetAsideError        the message crashed its session twice: a dead letter now
 ├── UnknownSessionError       no session has that id
 ├── OutcomeUnknownError       the session crashed before it confirmed the message
 ├── ModelError                a model call failed
 ├── DeliveryError             a message could not be delivered to a chat platform
 │    └── UnsendableFileError  the platform cannot take this file
 └── PlatformError             a chat platform does not respond

An error's text names what failed, what was kept and what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from hermes.domain.ids import SessionId
    from hermes.domain.turn.submission import Seen
    from hermes.domain.turn.turn_failure import Failure


class HermesError(Exception):
    """Base class of every error that Hermes raises on purpose.

    `code` identifies the kind of error. It never changes once released; the text may.
    """

    code: str = "internal_error"
    exit_code: ClassVar[int] = 1


class ConfigError(HermesError):
    """Invalid configuration: all problems, and the environment variables that are missing."""

    code = "config_invalid"
    exit_code = 78

    def __init__(self, *problems: str, missing_variables: tuple[str, ...] = ()) -> None:
        many = (f"the configuration has {len(problems)} problems:", *problems)
        super().__init__(problems[0] if len(problems) == 1 else "\n  ".join(many))
        self.problems = problems
        self.missing_variables = missing_variables


class HomeError(HermesError):
    code = "home_unusable"
    exit_code = 78


class AlreadyRunningError(HermesError):
    code = "already_running"
    exit_code = 75

    def __init__(self, message: str, *, pid: int | None = None) -> None:
        super().__init__(message)
        self.pid = pid


class NotRunningError(HermesError):
    """No daemon answers on this home."""

    code = "not_running"


class StorageError(HermesError):
    code = "storage_error"
    exit_code = 74


class StorageFullError(StorageError):
    """No space left. Nothing was written; what was stored before is still readable."""

    code = "storage_full"


class StorageFailedError(StorageError):
    """A write or sync failed in a way that makes the page cache untrustworthy."""

    code = "storage_failed"


class StorageFormatError(StorageError):
    """The store was written by a newer Hermes, or is not a Hermes store. A retry does not help."""

    code = "storage_format"
    exit_code = 78


class ForeignStoreError(StorageFormatError):
    """The file is not a Hermes store. If Hermes created it, it is damaged."""

    code = "storage_foreign"


class BadRowError(StorageError):
    code = "storage_bad_row"

    def __init__(self, session: SessionId, problem: str) -> None:
        super().__init__(f"the row of session {session} is damaged ({problem})")
        self.session = session
        self.problem = problem


class SequenceConflictError(StorageError):
    """The session has newer records than the writer knows."""

    code = "sequence_conflict"


class StaleOwnerError(StorageError):
    """A newer owner has written to this session; this writer must stop."""

    code = "stale_owner"


class AlreadySeenError(StorageError):
    code = "already_seen"

    def __init__(self, seen: Seen) -> None:
        super().__init__(f"inbound {seen.key} was accepted before, as turn {seen.turn} of {seen.session}")
        self.seen = seen


class ChangeKnownError(StorageError):
    code = "change_known"

    def __init__(self, subject: str, number: int) -> None:
        super().__init__(f"this operation was stored before, as change {number} of {subject}")
        self.subject = subject
        self.number = number


class RefusedError(HermesError):
    """The message was not accepted, and nothing was stored."""

    code = "refused"
    retry_after_s: int | None = None


class BadInputError(RefusedError):
    code = "invalid_value"

    def __init__(self, message: str, *, param: str | None = None, code: str = "") -> None:
        super().__init__(message)
        self.param = param
        self.code = code or type(self).code


class UnknownJobError(BadInputError):
    """No scheduled job has that id or name (any more)."""

    code = "unknown_job"


class SessionInUseError(BadInputError):
    """The session was used meanwhile, so that it is not deleted as unused."""

    code = "session_in_use"


class BusyError(RefusedError):
    code = "busy"
    retry_after_s = 1


class QueueFullError(BusyError):
    """The queue of this session is full. A retry succeeds once a queued turn has finished."""

    code = "queue_full"


class StoppingError(RefusedError):
    code = "stopping"
    retry_after_s = 5


class SessionParkedError(RefusedError):
    """Supervision gave up on this session; an operator can resume it."""

    code = "session_parked"


class SessionClosedError(RefusedError):
    """The session has ended. Only a person's message starts a new one."""

    code = "session_closed"


class SetAsideError(RefusedError):
    """The message crashed its session twice and is kept as a dead letter."""

    code = "dead_letter"


class UnknownSessionError(HermesError):
    """No session has or had that id."""

    code = "session_not_found"


class OutcomeUnknownError(HermesError):
    """The session crashed while it stored a message, which may or may not be stored."""

    code = "outcome_unknown"


class ModelError(HermesError):
    """A model call failed. The journal keeps `failure`."""

    code = "model_failed"

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class DeliveryError(HermesError):
    """A message could not be delivered.

    `arrived_perhaps`: it may have arrived. `gone`: the chat does not exist any more. `refused`: the platform rejected
    the message, and a retry rarely helps. `moved_to`: new id of the chat.
    """

    code = "delivery_failed"

    def __init__(
        self,
        message: str,
        *,
        retry_after_s: float | None = None,
        gone: bool = False,
        refused: bool = False,
        arrived_perhaps: bool = False,
        moved_to: str = "",
    ) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.moved_to = moved_to
        self.gone = gone
        self.refused = refused
        self.arrived_perhaps = arrived_perhaps


class UnsendableFileError(DeliveryError):
    """The file is missing or too large. The recipient gets a message instead."""

    code = "file_unsendable"


class PlatformError(HermesError):
    """A chat platform does not respond correctly. Hermes retries; accepted messages are not lost."""

    code = "platform_unavailable"

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
