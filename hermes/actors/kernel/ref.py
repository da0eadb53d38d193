"""Reference to a LoopActor: a pykka reference that puts mail into the inbox directly, with an awaitable stop."""

from __future__ import annotations

from typing import Any, TypeVar

from pykka import Actor, ActorDeadError, ActorRef, ThreadingActor, Timeout
from pykka.messages import _ActorStop

from hermes.actors.kernel.future import LoopFuture
from hermes.actors.kernel.mailbox import Inbox, Letter

__all__ = ["Actor", "ActorDeadError", "ActorRef", "LoopRef", "ThreadingActor", "Timeout"]  # pykka's, for the shells

A = TypeVar("A", bound=Actor)


class LoopRef(ActorRef[A]):
    actor_inbox: Inbox  # type: ignore[assignment]

    def tell(self, message: Any) -> None:
        self.actor_inbox.put(Letter(message))

    def ask(self, message: Any, *, block: bool = True, timeout: float | None = None) -> Any:
        answer = LoopFuture()
        self.actor_inbox.put(Letter(message, answer))
        return answer.get(timeout=timeout) if block else answer

    def stop(self, *, block: bool = True, timeout: float | None = None) -> Any:
        """Stop the actor. Return True when it has stopped, False if it had ended; if not `block`, a future."""
        return self.ask(_ActorStop(), block=block, timeout=timeout)
