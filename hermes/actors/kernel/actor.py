"""LoopActor: a pykka actor that runs on an asyncio event loop instead of its own thread.

Rules:
- An actor handles one message at a time, in order; stops and death notices come first.
- A handler never waits. Long work is a task or a child actor that reports its outcome as a message.
- An error in a handler ends its own actor and nothing else.
- The owner is notified of every end, and every ask is answered.
- This module keeps running actors referenced, and ended ones not.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count
from time import monotonic
from traceback import format_exception_only
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import pykka
from loguru import logger
from pykka.messages import _ActorStop

from hermes.actors.kernel.future import LoopFuture
from hermes.actors.kernel.mailbox import ActorDied, Inbox, Letter
from hermes.actors.kernel.ref import LoopRef
from hermes.actors.kernel.scheduler import Dispatcher
from hermes.actors.kernel.timers import Timers
from hermes.domain.read.views import ActorView

if TYPE_CHECKING:
    import threading
    from types import TracebackType

__all__ = ["ActorDied", "LoopActor", "live_actors"]

BATCH = 64  # messages of one actor before the next actor runs
SLOW_S = 0.05

_live: dict[LoopActor, None] = {}  # in the order they were started
_numbers = count(1)


def live_actors() -> list[LoopActor]:
    return list(_live)


class _Flag:
    """The methods of threading.Event that pykka uses, without its kilobyte of memory."""

    __slots__ = ("_set",)

    def __init__(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True


class LoopActor(pykka.Actor):
    # Slots keep an idle actor small. Two underscores avoid clashes with names of subclasses.
    __slots__ = (
        "__born",
        "__current",
        "__deferred",
        "__handled",
        "__last_error",
        "__owner",
        "__slowest_s",
        "__started",
        "__timers",
        "_actor_ref",
        "actor_inbox",
        "actor_stopped",
        "actor_urn",
        "name",
    )
    kind: ClassVar[str] = "actor"
    actor_inbox: Inbox  # type: ignore[assignment]  # no `get`, no `empty`: only pykka's own loop would call them

    @classmethod
    def start(
        cls, *args: Any, name: str = "", owner: pykka.ActorRef[Any] | None = None, **kwargs: Any
    ) -> pykka.ActorRef[Self]:
        """Start an actor on the running loop. `__init__` gets the other arguments; name and owner are set later."""
        actor = cls(*args, **kwargs)
        actor.name = name or actor.name
        actor.__owner = owner
        _live[actor] = None
        actor._start_actor_loop()
        return actor.actor_ref

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        # pykka's own __init__ is not called: its random URN and threading.Event cost more than all of this.
        number = next(_numbers)
        self.name = f"{self.kind}-{number}"
        self.actor_urn = f"urn:hermes:{number}"
        self.actor_inbox = self._create_actor_inbox()
        self.actor_stopped = cast("threading.Event", _Flag())
        self._actor_ref = LoopRef(self)
        self.__owner: pykka.ActorRef[Any] | None = None
        self.__current: Letter | None = None  # being handled; its reply is not deferred
        self.__deferred: dict[LoopFuture, None] | None = None  # in the order in which they were asked
        self.__timers: Timers | None = None
        self.__started = False
        self.__born = monotonic()
        self.__handled = 0
        self.__slowest_s = 0.0
        self.__last_error = ""

    @staticmethod
    def _create_actor_inbox() -> Inbox:  # type: ignore[override]
        return Inbox(Dispatcher.here())

    @staticmethod
    def _create_future() -> LoopFuture:
        return LoopFuture()

    def _start_actor_loop(self) -> None:
        self.actor_inbox.open(self.__drain)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    # ------------------------------------------------------------ for subclasses

    def on_receive(self, message: Any) -> Any:
        """Log a message that no handler knows: its type, but not its content, which pykka would log."""
        logger.warning("{} does not understand {}", self, type(message).__name__)

    def on_end(self) -> None:
        """Release what the actor holds. Called once, after a stop as well as after a failure."""

    def on_stop(self) -> None:
        self.on_end()

    def on_failure(
        self,
        exception_type: type[BaseException] | None,  # noqa: ARG002 - pykka's signature
        exception_value: BaseException | None,  # noqa: ARG002
        traceback: TracebackType | None,  # noqa: ARG002
    ) -> None:
        self.on_end()

    def tell_self(self, message: object) -> None:
        """Send a message to this actor. Dropped if it has ended, so callbacks need not check."""
        with suppress(pykka.ActorDeadError):
            self.actor_ref.tell(message)

    def tell_later(self, delay_s: float, message: object) -> asyncio.TimerHandle:
        """Send a message to this actor after a delay. Call on its own loop only; dropped if the actor has ended."""
        loop = asyncio.get_running_loop()
        handle = loop.call_later(delay_s, self.tell_self, message)
        if self.__timers is None:
            self.__timers = Timers()
        self.__timers.add(handle, loop.time())
        return handle

    def defer_reply(self) -> LoopFuture:
        """Return the current message's reply, to settle later. If it is open at the actor's end, it fails."""
        if self.__current is None or self.__current.reply_to is None:
            raise RuntimeError(
                f"{self} has no caller to answer: only an asked message's reply can be deferred, and once"
            )
        reply = self.__current.reply_to
        self.__current = None
        if self.__deferred is None:
            self.__deferred = {}
        self.__deferred[reply] = None
        reply.watch(self.__deferred.pop)
        return reply

    def statistics(self) -> ActorView:
        inbox = self.actor_inbox
        return ActorView(
            kind=self.kind,
            name=self.name,
            state="stopping" if inbox.is_stopping() else "running",
            mailbox=len(inbox),
            oldest_s=inbox.oldest_s(),
            handled=self.__handled,
            slowest_s=self.__slowest_s,
            age_s=monotonic() - self.__born,
            last_error=self.__last_error,
        )

    # ------------------------------------------------------------ on the loop

    def __drain(self, now: float, until: float) -> float:
        if not self.__started:
            now = self.__begin(now)
        inbox = self.actor_inbox
        left = BATCH
        while (letter := inbox.take()) is not None:
            now = self.__handle(letter, now)
            left -= 1
            if now >= until or not left:
                inbox.pass_turn()
                break
        return now

    def __begin(self, now: float) -> float:
        self.__started = True
        try:
            self.on_start()
        except BaseException as error:  # noqa: BLE001 - as below
            self.__end(error, None)
        return self.__took(now, "on_start")

    def __handle(self, letter: Letter, now: float) -> float:
        message = letter.message
        if type(message) is _ActorStop:
            self.__end(None, letter)
            return self.__took(now, "on_stop")
        self.__current = letter
        try:
            answer = self.on_receive(message)
        except BaseException as error:  # noqa: BLE001 - the outermost edge: even a SystemExit ends this actor alone
            self.__end(error, letter)
        else:
            if letter.reply_to is not None and self.__current is not None:
                letter.reply_to.settle(answer)
        self.__current = None
        self.__handled += 1
        # The same as __took, inlined: this runs for every message.
        done = monotonic()
        took_s = done - now
        if took_s > self.__slowest_s or took_s > SLOW_S:
            self.__note_slowness(took_s, type(message).__name__)
        return done

    def __took(self, began: float, what: str) -> float:
        now = monotonic()
        took_s = now - began
        if took_s > self.__slowest_s or took_s > SLOW_S:
            self.__note_slowness(took_s, what)
        return now

    def __note_slowness(self, took_s: float, what: str) -> None:
        self.__slowest_s = max(self.__slowest_s, took_s)
        if took_s > SLOW_S:
            logger.warning("{} held up the event loop for {:.0f} ms with {}", self, took_s * 1000, what)

    # ------------------------------------------------------------ the end

    def __end(self, cause: BaseException | None, last: Letter | None) -> None:
        """End the actor. `last` is the message that it failed on, or the stop."""
        ended = f"{self} has ended"
        self.actor_stopped.set()
        waiting = self.actor_inbox.close(ended)
        if cause is not None:
            self.__log(cause, "on_start" if last is None else type(last.message).__name__)
        self.__call_last_hook(cause)
        del _live[self]
        if self.__timers is not None:
            self.__timers.cancel()
        self.__tell_owner(cause, last, waiting)
        # Answers come last: a sender that gets one finds the actor ended and its owner notified.
        if last is not None and last.reply_to is not None:
            self.__answer_last(last.reply_to, cause)
        for letter in waiting:
            letter.dismiss(ended, stopped=True)
        for reply in tuple(self.__deferred or ()):
            reply.abandon(pykka.ActorDeadError(ended))

    def __call_last_hook(self, cause: BaseException | None) -> None:
        try:
            if cause is None:
                self.on_stop()
            else:
                self.on_failure(type(cause), cause, cause.__traceback__)
        except BaseException as error:  # noqa: BLE001 - nothing may interrupt the end of an actor
            self.__log(error, "on_stop" if cause is None else "on_failure")

    def __log(self, error: BaseException, what: str) -> None:
        self.__last_error = format_exception_only(error)[-1].strip()
        logger.opt(exception=error).error("{} failed on {}", self, what)

    def __tell_owner(self, cause: BaseException | None, last: Letter | None, waiting: list[Letter]) -> None:
        if self.__owner is None:
            return
        told = (letter.message for letter in waiting if letter.reply_to is None)
        died = ActorDied(
            ref=self.actor_ref,
            name=self.name,
            cause=cause,
            message=None if cause is None or last is None else last.message,
            unhandled=tuple(message for message in told if type(message) is not _ActorStop),
        )
        try:
            self.__owner.tell(died)
        except pykka.ActorDeadError:
            logger.debug("{} has ended, and so has its owner", self)

    def __answer_last(self, reply: LoopFuture, cause: BaseException | None) -> None:
        if cause is None:
            reply.settle(True)
        elif isinstance(cause, Exception):
            reply.abandon(cause)
        else:
            # Raised unchanged in the sender's task, a SystemExit would end the loop, a CancelledError the wrong task.
            dead = pykka.ActorDeadError(f"{self} was ended by {type(cause).__name__}")
            dead.__cause__ = cause
            reply.abandon(dead)
