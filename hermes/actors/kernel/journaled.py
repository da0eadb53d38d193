"""Base class of actors that keep their state in the journal: persist, then apply, then act.

A subclass decides what to write and calls `persist`. While the transaction is on its way, all other mail is stashed.
So the state in memory is never ahead of the disk, and a refused write leaves nothing to undo. Nothing here blocks.

Each actor is in one state of each of these three small machines:

    writing   READY ── persist ──► WRITING ── committed ───────────────────► READY   on_durable, on_persisted
                                           ├─ refused, a sender waits ─────► READY   on_refused
                                           ├─ refused, disk full ──────────► READY   the same mail again, later
                                           ├─ refused, store failed ───────► READY   stashed mail stays where it is
                                           ├─ conflict ────────────────────► READY   on_conflict; or the actor stops
                                           └─ refused otherwise ───────────► the actor fails

    loading   ABSENT ── load ──► LOADING ── read ──► LOADED     on_loaded
                                         └─ failed ► ABSENT     on_load_failed
              The actor takes mail and writes while it loads.

    stage     NEW ── first commit ──► SETTLED      NEW: nothing of it is on disk
              RECOVERING ── settle ─► SETTLED      RECOVERING: its open work must not start yet

After each write and each load the actor calls `on_ready`, and then handles the stashed mail in order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import Any, Generic, TypeVar

from loguru import logger

from hermes.actors.kernel.actor import LoopActor
from hermes.domain.errors import (
    HermesError,
    SequenceConflictError,
    StorageFailedError,
    StorageFullError,
    UnknownSessionError,
)
from hermes.domain.read.reader import Reader
from hermes.domain.values import dataclass
from hermes.ports.storage import Journal, Transaction

RETRY_WRITE_S = 1.0  # pause before mail that found the disk full is handled again

Mail = TypeVar("Mail")
Step = TypeVar("Step")
T = TypeVar("T")


class WriteState(Enum):
    READY = "ready"
    WRITING = "writing"


class LoadState(Enum):
    ABSENT = "absent"
    LOADING = "loading"
    LOADED = "loaded"


class LifecycleStage(Enum):
    NEW = "new"
    RECOVERING = "recovering"
    SETTLED = "settled"


class Refusal(Enum):
    """Reaction to a refused write."""

    CONFLICT = "conflict"  # another writer changed or deleted what this actor owns
    RETRY = "retry"
    HALT = "halt"  # the daemon is about to end; the next one starts from what is stored
    FAIL = "fail"
    REPLY = "reply"


def refusal_of(error: HermesError, *, awaited: bool) -> Refusal:
    """Return how an actor reacts. `awaited`: a sender waits for the outcome and can try again itself."""
    match error:
        case SequenceConflictError() | UnknownSessionError():
            return Refusal.CONFLICT
        case _ if awaited:
            return Refusal.REPLY
        case StorageFullError():
            return Refusal.RETRY
        case StorageFailedError():
            return Refusal.HALT
        case _:
            return Refusal.FAIL


@dataclass(frozen=True, slots=True, kw_only=True)
class _WriteEnded:
    error: HermesError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _LoadEnded:
    found: Any
    error: HermesError | None


_COMMITTED = _WriteEnded(error=None)


class JournaledActor(LoopActor, ABC, Generic[Mail, Step]):
    """Actor with state in the journal. `Mail` causes a write; `Step` is its content."""

    __slots__ = ("_load_state", "_stash", "_write", "journal", "stage")

    def __init__(self, journal: Journal, stage: LifecycleStage = LifecycleStage.SETTLED) -> None:
        super().__init__()
        self.journal = journal
        self.stage = stage
        self._write: tuple[Mail, Step] | None = None
        self._load_state = LoadState.ABSENT
        self._stash: list[object] | None = None  # a list only while it holds mail: most actors are idle

    # ------------------------------------------------------------ hooks

    def handle(self, message: object) -> object:
        """Handle one message. Never called during a write."""
        return super().on_receive(message)

    def on_durable(self, mail: Mail, step: Step) -> None:
        """Hand what is on disk now to other actors. Called even if this actor has ended; must not change it."""

    def on_created(self) -> None:
        """Called when a NEW actor is on disk for the first time, before `on_persisted`."""

    @abstractmethod
    def on_persisted(self, mail: Mail, step: Step) -> None:
        """Apply the step to the state in memory, and perform its effects."""

    def is_awaited(self, mail: Mail) -> bool:  # noqa: ARG002 - for subclasses
        """Return whether a sender waits for the outcome of this mail."""
        return False

    def on_refused(self, mail: Mail, error: HermesError) -> None:
        """Answer the sender of mail whose write was refused."""

    def on_conflict(self, mail: Mail, error: HermesError) -> bool:  # noqa: ARG002 - for subclasses
        """Give the mail back. Return whether the actor goes on; if not, the base class stops it."""
        raise error

    def on_loaded(self, found: Any) -> None:
        """Keep what `load` has read."""

    def on_load_failed(self, error: HermesError) -> None:
        raise error

    def on_ready(self) -> None:
        """Start or stop work to match the state in memory. Called before stashed mail is handled."""

    # ------------------------------------------------------------ for subclasses

    @property
    def write_state(self) -> WriteState:
        return WriteState.READY if self._write is None else WriteState.WRITING

    @property
    def load_state(self) -> LoadState:
        return self._load_state

    @property
    def unfinished_write(self) -> Mail | None:
        """Return the mail whose write has no known outcome."""
        return None if self._write is None else self._write[0]

    @property
    def stashed(self) -> tuple[object, ...]:
        return tuple(self._stash or ())

    def persist(self, mail: Mail, step: Step, transaction: Transaction) -> None:
        """Write the transaction. Exactly one of the hooks for its outcome follows."""
        assert self._write is None, "one write at a time"
        self.journal.commit(transaction, self._on_journal_answer)  # answers later, on the loop
        self._write = mail, step

    def read(self, query: Callable[[Reader], T], outcome: Callable[[T | None, HermesError | None], object]) -> None:
        """Read. `outcome` makes the message that reports the result to this actor."""
        self.journal.read(query, lambda found, error: self.tell_self(outcome(found, error)))

    def load(self, query: Callable[[Reader], object]) -> None:
        """Read state that `on_loaded` keeps. Does nothing during an earlier load."""
        if self._load_state is not LoadState.LOADING:
            self._load_state = LoadState.LOADING
            self.read(query, lambda found, error: _LoadEnded(found=found, error=error))

    def stash(self, message: object) -> None:
        """Keep a message until the next write or load has ended."""
        if self._stash is None:
            self._stash = []
        self._stash.append(message)

    def settle(self) -> None:
        self.stage = LifecycleStage.SETTLED

    # ------------------------------------------------------------ the machine

    def on_receive(self, message: object) -> object:
        if type(message) is _WriteEnded:
            self._on_write_ended(message.error)
        elif type(message) is _LoadEnded:
            self._on_load_ended(message)
        elif self._write is not None:
            self.stash(message)
        else:
            return self.handle(message)
        return None

    def _on_journal_answer(self, error: HermesError | None) -> None:
        if error is not None:
            self.tell_self(_WriteEnded(error=error))
            return
        assert self._write is not None
        self.on_durable(*self._write)
        self.tell_self(_COMMITTED)

    def _on_write_ended(self, error: HermesError | None) -> None:
        assert self._write is not None
        (mail, step), self._write = self._write, None
        if error is None:
            if self.stage is LifecycleStage.NEW:
                self.stage = LifecycleStage.SETTLED
                self.on_created()
            self.on_persisted(mail, step)
        elif not self._react(mail, error):
            return
        self._resume()

    def _react(self, mail: Mail, error: HermesError) -> bool:
        """React to a refused write. Return whether the actor goes on with its stashed mail."""
        match refusal_of(error, awaited=self.is_awaited(mail)):
            case Refusal.CONFLICT:
                if not self.on_conflict(mail, error):
                    self.stop()
                    return False
            case Refusal.REPLY:
                self.on_refused(mail, error)
            case Refusal.RETRY:
                logger.warning("{}: write refused, retrying every {:.0f} s: {}", self, RETRY_WRITE_S, error)
                self.tell_later(RETRY_WRITE_S, mail)
            case Refusal.HALT:
                return False
            case Refusal.FAIL:
                raise error
        return True

    def _on_load_ended(self, ended: _LoadEnded) -> None:
        if ended.error is not None:
            self._load_state = LoadState.ABSENT
            self.on_load_failed(ended.error)
            return
        self._load_state = LoadState.LOADED
        self.on_loaded(ended.found)
        self._resume()

    def _resume(self) -> None:
        """Bring the work in line with the state, and handle stashed mail until the next write begins."""
        if self._write is not None:
            return
        self.on_ready()
        stash, self._stash = self._stash, None
        try:
            while stash and self._write is None:
                self.handle(stash.pop(0))
        finally:
            if stash:  # mail that was stashed again goes first
                self._stash = [*self.stashed, *stash]
