"""Root actor: starts the daemon's actors in order, restarts or parks those that die, and drives the shutdown.

The shutdown protocol is the machine in `shutdown.py`. The root receives `ShutDown` as a message, feeds the machine
and performs its effects through `ShutdownEffects`. It stops its own children in reverse order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeAlias, assert_never

from loguru import logger
from pykka import ActorDeadError, ActorRef

from hermes.actors.kernel.actor import ActorDied, LoopActor
from hermes.actors.kernel.future import LoopFuture
from hermes.domain.errors import HermesError
from hermes.domain.values import dataclass
from hermes.ports.given import Clock
from hermes.ports.supervision import Park, RestartPolicy
from hermes.supervision.shutdown import (
    Action,
    Chats,
    Effect,
    Event,
    OperationDone,
    OperationFailed,
    Running,
    RunStage,
    ShutdownRequested,
    ShutdownStage,
    State,
    StopBudget,
    Stopping,
    StopRequest,
    TimerFired,
    next_timer,
    step,
)

StartChild: TypeAlias = Callable[[ActorRef[Any]], ActorRef[Any]]  # takes the owner


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    name: str
    start: StartChild


class ShutdownEffects(Protocol):
    """Performs what the shutdown machine decides."""

    def budget(self) -> StopBudget: ...

    def active_work(self) -> int:
        """Return the number of model calls and tool calls in flight."""

    def act(self, action: Action, request: StopRequest) -> None: ...

    async def run(self, stage: ShutdownStage, state: Stopping) -> Chats:
        """Run the operation of a stage. Returns the chats whose sessions announce the stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutDown:
    """Stop everything in order. Sent for SIGTERM, Ctrl-C, an operator's request and a failed store."""

    request: StopRequest
    effects: ShutdownEffects


@dataclass(frozen=True, slots=True, kw_only=True)
class StopChildren:
    """Answered when the last child has stopped. For a start that failed half-way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _StartAgain:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _OperationEnded:
    stage: ShutdownStage
    task: asyncio.Task[Chats]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timer:
    pass


class Children:
    """Running children by name. Kept by the root; a child that is down is not in it."""

    def __init__(self) -> None:
        self._refs: dict[str, ActorRef[Any]] = {}
        self.parked: dict[str, str] = {}

    def __getitem__(self, name: str) -> ActorRef[Any]:
        if name not in self._refs:
            raise ActorDeadError(self.parked.get(name) or f"{name} is restarting")
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
        self._on_children_stopped: Callable[[], None] | None = None  # set: children are being stopped
        self._shutdown: State = Running()
        self._effects: ShutdownEffects | None = None
        self._operation: asyncio.Task[Chats] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def on_start(self) -> None:
        for name in self._specs:
            self._start_child(name)

    def on_stop(self) -> None:
        if self._operation is not None:
            self._operation.cancel()

    def on_receive(self, message: object) -> None:
        match message:
            case ActorDied():
                self._on_died(message)
            case _StartAgain():
                self._start_child(message.name)
            case ShutDown():
                self._effects = message.effects
                self._step(ShutdownRequested(request=message.request, budget=message.effects.budget()))
            case _OperationEnded():
                self._on_operation_ended(message)
            case _Timer():
                assert self._effects is not None
                self._step(TimerFired(active=self._effects.active_work()))
            case StopChildren():
                self._stop_children(partial(_answer, self.defer_reply()))
            case _:
                super().on_receive(message)

    # ------------------------------------------------------------ children

    def _start_child(self, name: str) -> None:
        if self._on_children_stopped is None:
            self._children.put(name, self._specs[name].start(self.actor_ref))

    def _on_died(self, died: ActorDied) -> None:
        self._children.drop(died.name)
        if self._on_children_stopped is not None:
            self._stop_last_child(self._on_children_stopped)
        elif died.cause is not None:
            self._restart_or_park(died.name, died.cause)

    def _restart_or_park(self, name: str, cause: BaseException) -> None:
        now = self._clock()
        deaths = self._deaths[name] = (*self._deaths.get(name, ()), now)
        verdict = self._policy(deaths, now)
        if isinstance(verdict, Park):
            outcome = f"parked: {verdict.reason}, the last time by {cause!r}"
            self._children.parked[name] = outcome
            logger.error("{} crashed ({!r}) and is {}", name, cause, outcome)
        else:
            outcome = f"restart in {verdict.after_s:.2f} s"
            logger.warning("{} crashed ({!r}): {}", name, cause, outcome)
            self.tell_later(verdict.after_s, _StartAgain(name=name))
        self._report(name, repr(cause), outcome)

    def _stop_children(self, on_stopped: Callable[[], None]) -> None:
        self._on_children_stopped = on_stopped
        self._stop_last_child(on_stopped)

    def _stop_last_child(self, on_stopped: Callable[[], None]) -> None:
        last = self._children.last()
        if last is None:
            on_stopped()
        else:
            last.stop(block=False)

    # ------------------------------------------------------------ shutdown

    def _step(self, event: Event) -> None:
        self._shutdown, effects = step(self._shutdown, event, asyncio.get_running_loop().time())
        for effect in effects:
            self._perform(effect)
        self._set_timer()

    def _perform(self, effect: Effect) -> None:
        assert self._effects is not None
        assert not isinstance(self._shutdown, Running)
        match effect:
            case RunStage():
                self._run(effect.stage)
            case Action():
                self._effects.act(effect, self._shutdown.request)
            case _:
                assert_never(effect)

    def _run(self, stage: ShutdownStage) -> None:
        assert self._effects is not None
        assert isinstance(self._shutdown, Stopping)
        if self._operation is not None:
            self._operation.cancel()
            self._operation = None
        if stage is ShutdownStage.STOP_CHILDREN:
            self._stop_children(partial(self._step, OperationDone(stage=stage)))
            return
        work = self._effects.run(stage, self._shutdown)
        self._operation = asyncio.get_running_loop().create_task(work, name=f"shutdown: {stage.name.lower()}")
        self._operation.add_done_callback(partial(self._report_operation, stage))

    def _report_operation(self, stage: ShutdownStage, task: asyncio.Task[Chats]) -> None:
        with suppress(ActorDeadError):
            self.actor_ref.tell(_OperationEnded(stage=stage, task=task))

    def _on_operation_ended(self, ended: _OperationEnded) -> None:
        task = ended.task
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, ActorDeadError | HermesError | TimeoutError):
            logger.opt(exception=error).error("shutdown: {} failed", ended.stage.name.lower())
        elif error is not None:
            logger.warning("shutdown: {} failed: {}", ended.stage.name.lower(), error)
        if task is not self._operation:
            return  # it was cancelled for the next one
        self._operation = None
        failed = task.cancelled() or error is not None
        self._step(
            OperationFailed(stage=ended.stage) if failed else OperationDone(stage=ended.stage, chats=task.result())
        )

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = next_timer(self._shutdown)
        if due is not None:
            self._timer = self.tell_later(max(0.0, due - asyncio.get_running_loop().time()), _Timer())


def _answer(reply: LoopFuture) -> None:
    reply.set(None)
