"""The root actor: starts the daemon's actors in order, restarts what dies, parks what cannot be kept alive, and
stops them in reverse. It knows nothing of chats, and no child's death takes the process down.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from loguru import logger
from pykka import ActorDeadError, ActorRef

from hermes.actors.kernel.actor import ActorDied, LoopActor
from hermes.actors.kernel.future import LoopFuture
from hermes.domain.values import dataclass
from hermes.ports.given import Clock
from hermes.ports.supervision import Park, RestartPolicy

StartChild: TypeAlias = Callable[[ActorRef[Any]], ActorRef[Any]]  # takes the owner


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    name: str
    start: StartChild


@dataclass(frozen=True, slots=True, kw_only=True)
class StopChildren:
    """Asked once: answered when the last child has stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _StartAgain:
    name: str


class Children:
    """Who answers to a name now. Kept by the root; a child that is down is not there."""

    def __init__(self) -> None:
        self._refs: dict[str, ActorRef[Any]] = {}
        self.parked: dict[str, str] = {}

    def __getitem__(self, name: str) -> ActorRef[Any]:
        if name not in self._refs:
            raise ActorDeadError(self.parked.get(name) or f"{name} is between two lives")
        return self._refs[name]

    def put(self, name: str, ref: ActorRef[Any]) -> None:
        self._refs[name] = ref

    def drop(self, name: str) -> None:
        self._refs.pop(name, None)

    def last(self) -> ActorRef[Any] | None:
        return next(reversed(self._refs.values()), None)


class RootActor(LoopActor):
    kind = "root"

    def __init__(
        self,
        specs: tuple[ChildSpec, ...],
        *,
        children: Children,
        policy: RestartPolicy,
        clock: Clock,
        report: Callable[[str, str, str], None],
    ) -> None:
        super().__init__()
        self._specs = {spec.name: spec for spec in specs}
        self._children = children
        self._policy = policy
        self._clock = clock
        self._report = report  # takes a name, the problem and the verdict
        self._deaths: dict[str, tuple[float, ...]] = {}
        self._stopped: LoopFuture | None = None

    def on_start(self) -> None:
        for name in self._specs:
            self._start_child(name)

    def on_receive(self, message: object) -> None:
        match message:
            case ActorDied():
                self._on_died(message)
            case _StartAgain():
                self._start_child(message.name)
            case StopChildren():
                self._stopped = self.defer_reply()
                self._stop_last()
            case _:
                super().on_receive(message)

    def _start_child(self, name: str) -> None:
        if self._stopped is None:
            self._children.put(name, self._specs[name].start(self.actor_ref))

    def _on_died(self, died: ActorDied) -> None:
        self._children.drop(died.name)
        if self._stopped is not None:
            self._stop_last()
        elif died.cause is not None:
            self._decide(died.name, died.cause)

    def _decide(self, name: str, cause: BaseException) -> None:
        now = self._clock()
        deaths = self._deaths[name] = (*self._deaths.get(name, ()), now)
        verdict = self._policy(deaths, now)
        if isinstance(verdict, Park):
            said = f"parked: {verdict.reason}, the last time by {cause!r}"
            self._children.parked[name] = said
            logger.error("{} crashed ({!r}) and is {}", name, cause, said)
        else:
            said = f"restart in {verdict.after_s:.2f} s"
            logger.warning("{} crashed ({!r}): {}", name, cause, said)
            self.tell_later(verdict.after_s, _StartAgain(name=name))
        self._report(name, repr(cause), said)

    def _stop_last(self) -> None:
        assert self._stopped is not None
        last = self._children.last()
        if last is None:
            self._stopped.set(None)
        else:
            last.stop(block=False)
