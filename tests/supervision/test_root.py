from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from pykka import ActorDeadError, ActorRef

from hermes.actors.kernel.actor import LoopActor, live_actors
from hermes.domain.errors import StorageError
from hermes.supervision.restart_policy import RestartIntensity
from hermes.supervision.root import Children, ChildSpec, RootActor, ShutDown, ShutdownEffects, StopChildren
from hermes.supervision.shutdown import Action, Chats, ShutdownStage, StopBudget, Stopping, StopRequest
from tests.support.waiting import until


class Child(LoopActor):
    kind = "child"

    def __init__(self, stopped: list[str]) -> None:
        super().__init__()
        self._stopped = stopped

    def on_receive(self, message: object) -> object:
        if isinstance(message, BaseException):
            raise message
        return message

    def on_stop(self) -> None:
        self._stopped.append(self.name)


class Family:
    def __init__(self, names: tuple[str, ...]) -> None:
        self.children = Children()
        self.started: list[str] = []
        self.stopped: list[str] = []
        self.reports: list[tuple[str, str, str]] = []
        self.root: ActorRef[RootActor] = RootActor.start(
            tuple(ChildSpec(name=name, start=self._starter(name)) for name in names),
            children=self.children,
            policy=RestartIntensity(max_restarts=2, first_delay_s=0.0),
            clock=lambda: 0.0,
            report=lambda *report: self.reports.append(report),
            name="root",
        )

    def _starter(self, name: str) -> Callable[[ActorRef[RootActor]], ActorRef[Child]]:
        def start(owner: ActorRef[RootActor]) -> ActorRef[Child]:
            self.started.append(name)
            return Child.start(self.stopped, name=name, owner=owner)

        return start


@asynccontextmanager
async def family(*names: str) -> AsyncIterator[Family]:
    here = Family(names)
    try:
        await until(lambda: len(here.started) >= len(names))
        yield here
    finally:
        await here.root.ask(StopChildren(), block=False)
        await here.root.stop(block=False)
        await until(lambda: not live_actors())


async def test_children_start_in_order_and_stop_in_reverse() -> None:
    async with family("a", "b", "c") as here:
        assert here.started == ["a", "b", "c"]
    assert here.stopped == ["c", "b", "a"]


@pytest.mark.parametrize("death", [ValueError("x"), SystemExit(3), KeyboardInterrupt()])
async def test_dead_child_is_restarted_without_its_siblings(death: BaseException) -> None:
    async with family("a", "b") as here:
        sibling = here.children["b"]
        here.children["a"].tell(death)
        await until(lambda: here.started == ["a", "b", "a"])
        assert await here.children["a"].ask("hello", block=False) == "hello"
        assert here.children["b"] is sibling
        assert here.reports[0][0] == "a"
        assert "restart" in here.reports[0][2]


async def test_child_that_keeps_dying_is_parked_with_its_reason() -> None:
    async with family("a", "b") as here:
        for count in range(3):
            await until(lambda: alive(here, "a"))
            here.children["a"].tell(ValueError(f"death {count}"))
            await until(lambda seen=count: len(here.reports) > seen)  # type: ignore[misc]
        assert "it died 3 times" in here.children.parked["a"]
        assert "death 2" in here.children.parked["a"]
        with pytest.raises(ActorDeadError, match="parked"):
            here.children["a"]
        assert await here.children["b"].ask("still there", block=False) == "still there"


def alive(here: Family, name: str) -> bool:
    try:
        return here.children[name].is_alive()
    except ActorDeadError:
        return False


class Effects(ShutdownEffects):
    """Records what the root performs."""

    def __init__(self, *, drain_s: float = 60.0) -> None:
        self.performed: list[Action | ShutdownStage] = []
        self.fails: set[ShutdownStage] = set()
        self.hangs: set[ShutdownStage] = set()
        self.finished = asyncio.Event()
        self._budget = StopBudget(drain_s=drain_s)

    def budget(self) -> StopBudget:
        return self._budget

    def active_work(self) -> int:
        return 0

    def act(self, action: Action, request: StopRequest) -> None:
        self.performed.append(action)
        if action is Action.FINISH:
            self.finished.set()

    async def run(self, stage: ShutdownStage, state: Stopping) -> Chats:
        self.performed.append(stage)
        if stage in self.fails:
            raise StorageError("the disk is full")
        if stage in self.hangs:
            await asyncio.Event().wait()
        return frozenset()


BEGUN = [Action.ARM_WATCHDOG, Action.REPORT_STOPPING, Action.CLOSE_INTAKE]
BY_EFFECTS = [stage for stage in ShutdownStage if stage is not ShutdownStage.STOP_CHILDREN]


async def shut_down(here: Family, effects: Effects) -> list[Action | ShutdownStage]:
    here.root.tell(ShutDown(request=StopRequest(reason="test"), effects=effects))
    async with asyncio.timeout(20):
        await effects.finished.wait()
    return effects.performed


async def test_root_performs_the_shutdown_and_stops_children_in_reverse() -> None:
    async with family("a", "b") as here:
        performed = await shut_down(here, Effects())
        assert performed == [*BEGUN, *BY_EFFECTS, Action.FINISH]
        assert here.stopped == ["b", "a"]


async def test_failed_operations_do_not_stop_the_shutdown() -> None:
    async with family("a") as here:
        effects = Effects()
        effects.fails = {*ShutdownStage} - {ShutdownStage.MARK_SESSIONS}
        performed = await shut_down(here, effects)
        assert performed[-1] is Action.FINISH
        assert here.stopped == ["a"]


async def test_operation_that_hangs_is_cancelled_at_the_deadline() -> None:
    async with family("a") as here:
        effects = Effects(drain_s=0.05)
        effects.hangs = {ShutdownStage.DRAIN}
        performed = await shut_down(here, effects)
        assert performed == [*BEGUN, *BY_EFFECTS, Action.FINISH]


async def test_child_that_dies_during_the_drain_is_restarted() -> None:
    async with family("a") as here:
        effects = Effects()
        effects.hangs = {ShutdownStage.DRAIN}
        here.root.tell(ShutDown(request=StopRequest(reason="test"), effects=effects))
        await until(lambda: ShutdownStage.DRAIN in effects.performed)
        here.children["a"].tell(ValueError("x"))
        await until(lambda: here.started == ["a", "a"])
