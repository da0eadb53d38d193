"""Every error Hermes raises on purpose.

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
 │    ├── SequenceConflictError, StaleOwnerError   somebody else wrote first
 │    └── AlreadySeenError     this inbound id was accepted before
 ├── RefusedError              a message that was not accepted; nothing was stored
 │    ├── BadInputError        it can never be accepted as it is
 │    ├── BusyError            try again later
 │    │    └── QueueFullError  … when this conversation has less to do
 │    ├── StoppingError        the daemon is on its way down
 │    ├── SessionParkedError   the session cannot be kept alive
 │    ├── SessionClosedError   the conversation is over, and no person has begun another
 │    └── SetAsideError        the message crashed its session twice: a dead letter now
 ├── UnknownSessionError       no session under that id
 ├── OutcomeUnknownError       the session crashed before it could say whether it stored the message
 ├── ModelError                a model call that failed, with its kind
 ├── DeliveryError             something could not be said on a chat platform (yet)
 │    └── UnsendableFileError  a file that never can be sent there
 └── PlatformError             a chat platform cannot be listened to (for now)

An error's text says what happened, what was kept and what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from hermes.domain.types import Failure, Seen, SessionId


class HermesError(Exception):
    """The root of all errors that Hermes raises on purpose."""

    exit_code: ClassVar[int] = 1


class ConfigError(HermesError):
    """With every problem that was found, and the environment variables that were looked for and not found."""

    exit_code = 78

    def __init__(self, *problems: str, missing_variables: tuple[str, ...] = ()) -> None:
        many = (f"the configuration has {len(problems)} problems:", *problems)
        super().__init__(problems[0] if len(problems) == 1 else "\n  ".join(many))
        self.problems = problems
        self.missing_variables = missing_variables


class HomeError(HermesError):
    exit_code = 78


class AlreadyRunningError(HermesError):
    exit_code = 75

    def __init__(self, message: str, *, pid: int | None = None) -> None:
        super().__init__(message)
        self.pid = pid


class NotRunningError(HermesError):
    """No daemon answers on this home."""


class StorageError(HermesError):
    exit_code = 74


class StorageFullError(StorageError):
    """No space left. Nothing was written; what was stored before is still readable."""


class StorageFailedError(StorageError):
    """A write or sync failed in a way that makes the page cache untrustworthy."""


class StorageFormatError(StorageError):
    """The store was written by a newer Hermes, or is not a Hermes store. Trying again does not help."""

    exit_code = 78


class ForeignStoreError(StorageFormatError):
    """No Hermes store is recognised in the file. Where Hermes made one before, it is damaged."""


class BadRowError(StorageError):
    def __init__(self, session: SessionId, problem: str) -> None:
        super().__init__(f"the row of session {session} is damaged ({problem})")
        self.session = session
        self.problem = problem


class SequenceConflictError(StorageError):
    """The session has moved on since the writer last looked."""


class StaleOwnerError(StorageError):
    """A newer owner has written to this session; this one must not any more."""


class AlreadySeenError(StorageError):
    def __init__(self, seen: Seen) -> None:
        super().__init__(f"inbound {seen.key} was accepted before, as turn {seen.turn} of {seen.session}")
        self.seen = seen


class RefusedError(HermesError):
    """The message was not accepted and nothing of it was stored."""

    retry_after_s: int | None = None


class BadInputError(RefusedError):
    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.code = code


class BusyError(RefusedError):
    retry_after_s = 1


class QueueFullError(BusyError):
    """As much as may wait in this conversation waits: to try again helps when something of it is done."""


class StoppingError(RefusedError):
    retry_after_s = 5


class SessionParkedError(RefusedError):
    """Supervision gave up on this session; an operator can resume it."""


class SessionClosedError(RefusedError):
    """What no person wrote does not begin a session in place of one that has ended."""


class SetAsideError(RefusedError):
    """The message crashed its session twice and is kept as a dead letter."""


class UnknownSessionError(HermesError):
    """No session has, or ever had, that id."""


class OutcomeUnknownError(HermesError):
    """The session crashed while a message was on its way to disk: it may or may not be stored."""


class ModelError(HermesError):
    """A model call that failed. Its `failure` is what the journal keeps."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class DeliveryError(HermesError):
    """It could not be said. `arrived_perhaps`: nobody knows whether it was; `gone`: it never can be, there;
    `refused`: the platform looked at it and does not want it, which another try hardly changes; `moved_to`: the chat
    is called that now."""

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
    """A file that can never be sent: it is not there, or too large. Whoever waits for it has to be told."""


class PlatformError(HermesError):
    """A chat platform does not answer, or not as it should. It is tried again; nothing that was taken in is lost."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
