"""What waits for an actor: ordinary mail, and a control lane that overtakes it.

Rules: an idle inbox holds no queue; it is filled from any thread and emptied on the actor's loop; once closed it
takes nothing and says so to whoever tells or asks; what was put is either taken or returned by `close`, never lost.
"""

from __future__ import annotations

from asyncio import _get_running_loop as running_loop  # says None where get_running_loop() raises
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
    """Told to an actor's owner when the actor has ended, whatever the end was."""

    ref: ActorRef[Any]
    name: str
    cause: BaseException | None  # None: a clean stop
    message: object | None  # the one it failed on
    unhandled: tuple[object, ...]  # told messages that were still waiting, in order; whoever asked was answered


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
        return f"<Letter {type(self.message).__name__}>"  # what it says is nobody's business

    def dismiss(self, reason: str, *, stopped: bool) -> bool:
        """Answer whoever asked: `stopped` if it was for a stop, else ActorDeadError. False: nobody asked."""
        if self.reply_to is None:
            return False
        if type(self.message) is _ActorStop:
            self.reply_to.settle(stopped)
        else:
            self.reply_to.abandon(ActorDeadError(reason))
        return True

    def refuse(self, reason: str) -> None:
        """Nobody is there to read it: answer whoever asked, raise ActorDeadError to whoever told."""
        if not self.dismiss(reason, stopped=False):
            raise ActorDeadError(reason)


class Inbox:
    __slots__ = ("_closed", "_control", "_dispatcher", "_drain", "_due", "_first", "_rest")

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._drain: Drain | None = None
        self._due = True  # the dispatcher has been told, or need not be yet: it is not open
        self._control: deque[Letter] | None = None  # never empty
        self._first: Letter | None = None  # most of the time one is all there is, and a deque takes 600 bytes
        self._rest: deque[Letter] | None = None  # never empty
        self._closed = ""  # why, once it is

    def open(self, drain: Drain) -> None:
        """Have `drain` called on the loop whenever something waits, and once to begin with."""
        self._drain = drain
        self._dispatcher.add(drain)

    def put(self, letter: Letter, /) -> None:
        """From any thread. A closed inbox answers whoever asks, and raises ActorDeadError to whoever tells."""
        if running_loop() is not self._dispatcher.loop:
            self._put_from_afar(letter)
        elif self._closed:
            letter.refuse(self._closed)
        elif not self._due and type(letter.message) not in _CONTROL:
            # As _receive would, in short: most mail finds an inbox where nothing waits.
            assert self._drain is not None
            self._first = letter
            self._due = True
            self._dispatcher.add(self._drain)
        else:
            self._receive(letter)

    def take(self) -> Letter | None:
        """The next one. None: nothing waits, and the next to come has the inbox drained again."""
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
        """Be drained again after the others that are due."""
        if self._drain is not None:
            self._dispatcher.add(self._drain)

    def close(self, reason: str) -> list[Letter]:
        """Take nothing any more. Returns what was waiting."""
        with self._dispatcher.lock:  # another thread has left its letter by now, or finds the inbox closed
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
        """How long the one that was sent first has been waiting."""
        heads = (self._control[0] if self._control else None, self._first)
        sent = [head.sent for head in heads if head is not None]
        return monotonic() - min(sent) if sent else 0.0

    def is_stopping(self) -> bool:
        """It is closed, or a stop waits in it."""
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
