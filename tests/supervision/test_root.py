from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from pykka import ActorDeadError, ActorRef

from hermes.actors.kernel.actor import LoopActor, live_actors
from hermes.supervision.policy import RestartIntensity
from hermes.supervision.root import Children, ChildSpec, RootActor, StopChildren
from tests.actors.harness import until


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
async def test_a_child_that_dies_is_restarted_and_its_siblings_notice_nothing(death: BaseException) -> None:
    async with family("a", "b") as here:
        sibling = here.children["b"]
        here.children["a"].tell(death)
        await until(lambda: here.started == ["a", "b", "a"])
        assert await here.children["a"].ask("hello", block=False) == "hello"
        assert here.children["b"] is sibling
        assert here.reports[0][0] == "a"
        assert "restart" in here.reports[0][2]


async def test_a_child_that_cannot_be_kept_alive_is_parked_with_its_reason_and_the_rest_goes_on() -> None:
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
