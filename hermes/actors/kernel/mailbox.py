"""Mailbox of an actor: ordinary mail, and a control lane that overtakes it.

Rules: an idle inbox has no queue. Any thread may fill it; only the actor's loop empties it. A closed inbox refuses
mail and reports that to the sender. Every letter is either taken or returned by `close`, never lost.
"""

from __future__ import annotations

from asyncio import _get_running_loop as running_loop  # returns None where get_running_loop() raises
from collections import deque
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from pykka import ActorDeadError, ActorRef
from pykka._envelope import Envelope
from pykka.messages import _ActorStop

from hermes.domain.values import dataclass

if TYPE_CHECKING:
    from hermes.actors.kernel.future import LoopFuture
    from hermes.actors.kernel.scheduler import Dispatcher, Drain


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorDied:
    """Notice to an actor's owner that the actor has ended, for any reason."""

    ref: ActorRef[Any]
    name: str
    cause: BaseException | None  # None: a clean stop
    message: object | None  # the one it failed on
    unhandled: tuple[object, ...]  # waiting messages without a reply, in order; asks were answered


_CONTROL = frozenset({_ActorStop, ActorDied})


class Letter(Envelope[Any]):
    """An envelope with the time it was sent."""

    __slots__ = ("sent",)
    reply_to: LoopFuture | None

    def __init__(self, message: object, reply_to: LoopFuture | None = None) -> None:
        self.message = message
        self.reply_to = reply_to
        self.sent = monotonic()

    def __repr__(self) -> str:
        return f"<Letter {type(self.message).__name__}>"  # the content is private

    def dismiss(self, reason: str, *, stopped: bool) -> bool:
        """Answer the sender: `stopped` for a stop, else ActorDeadError. Return False if no reply is expected."""
        if self.reply_to is None:
            return False
        if type(self.message) is _ActorStop:
            self.reply_to.settle(stopped)
        else:
            self.reply_to.abandon(ActorDeadError(reason))
        return True

    def refuse(self, reason: str) -> None:
        """Answer an ask with ActorDeadError; raise it for a letter without a reply."""
        if not self.dismiss(reason, stopped=False):
            raise ActorDeadError(reason)


class Inbox:
    __slots__ = ("_closed", "_control", "_dispatcher", "_drain", "_due", "_first", "_rest")

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._drain: Drain | None = None
        self._due = True  # the dispatcher is notified, or the inbox is not open yet
        self._control: deque[Letter] | None = None  # never empty
        self._first: Letter | None = None  # mostly the only letter; a deque takes 600 bytes
        self._rest: deque[Letter] | None = None  # never empty
        self._closed = ""  # the reason; empty: open

    def open(self, drain: Drain) -> None:
        """Open the inbox. `drain` is called on the loop once at the start, and whenever mail waits."""
        self._drain = drain
        self._dispatcher.add(drain)

    def put(self, letter: Letter, /) -> None:
        """Add a letter, from any thread. A closed inbox refuses it (`Letter.refuse`)."""
        if running_loop() is not self._dispatcher.loop:
            self._put_from_afar(letter)
        elif self._closed:
            letter.refuse(self._closed)
        elif not self._due and type(letter.message) not in _CONTROL:
            # Short form of _receive: most mail finds an empty inbox.
            assert self._drain is not None
            self._first = letter
            self._due = True
            self._dispatcher.add(self._drain)
        else:
            self._receive(letter)

    def take(self) -> Letter | None:
        """Return the next letter. None: the inbox is empty, and the next letter schedules a drain."""
        if self._control is not None:
            return self._take_control(self._control)
        letter = self._first
        if letter is None:
            self._due = False
        elif (rest := self._rest) is None:
            self._first = None
        else:
            self._first = rest.popleft()
            if not rest:
                self._rest = None
        return letter

    def pass_turn(self) -> None:
        """Schedule another drain, after the other actors that are due."""
        if self._drain is not None:
            self._dispatcher.add(self._drain)

    def close(self, reason: str) -> list[Letter]:
        """Close the inbox and return the waiting letters."""
        with self._dispatcher.lock:  # other threads have added their letters, or find the inbox closed
            self._closed = reason
        self._due = True
        self._dispatcher.collect()
        first = () if self._first is None else (self._first,)
        waiting = [*(self._control or ()), *first, *(self._rest or ())]
        self._drain = self._control = self._first = self._rest = None
        return waiting

    # ------------------------------------------------------------ for operators, on the loop

    def __len__(self) -> int:
        return len(self._control or ()) + (self._first is not None) + len(self._rest or ())

    def oldest_s(self) -> float:
        """Return how long the oldest letter has been waiting."""
        heads = (self._control[0] if self._control else None, self._first)
        sent = [head.sent for head in heads if head is not None]
        return monotonic() - min(sent) if sent else 0.0

    def is_stopping(self) -> bool:
        """Return whether the inbox is closed or contains a stop."""
        return bool(self._closed) or any(type(letter.message) is _ActorStop for letter in self._control or ())

    # ------------------------------------------------------------ in and out

    def _put_from_afar(self, letter: Letter) -> None:
        with self._dispatcher.lock:
            closed = self._closed
            if not closed:
                try:
                    self._dispatcher.leave(partial(self._receive, letter))
                except RuntimeError:
                    closed = "the actor's event loop is closed"
        if closed:
            letter.refuse(closed)

    def _receive(self, letter: Letter) -> None:
        if type(letter.message) in _CONTROL:
            self._control = self._control or deque()
            self._control.append(letter)
        elif self._first is None:
            self._first = letter
        else:
            self._rest = self._rest or deque()
            self._rest.append(letter)
        if not self._due:
            self._due = True
            assert self._drain is not None
            self._dispatcher.add(self._drain)

    def _take_control(self, control: deque[Letter]) -> Letter:
        if len(control) == 1:
            self._control = None
        return control.popleft()
