"""A connection that ends is taken up again: after a pause that grows, or when its platform wants it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from hermes.actors.adapter import AdapterActor
from hermes.actors.kernel.actor import live_actors
from hermes.domain.errors import PlatformError
from hermes.ports.chat import ChatIntake, Inbound, Platform
from tests.support.chat_platform import ToyPlatform
from tests.support.waiting import until


class Adapter:
    """Ends as it is told, one problem a run; then it stays."""

    def __init__(self, *problems: Exception) -> None:
        self.platform: Platform = ToyPlatform()
        self.problems = list(problems)
        self.runs: list[float] = []
        self.edge: ChatIntake | None = None

    async def run(self, edge: ChatIntake) -> None:
        self.runs.append(asyncio.get_running_loop().time())
        if self.problems:
            raise self.problems.pop(0)
        self.edge = edge
        edge.alive()
        await asyncio.Event().wait()

    async def close(self) -> None:
        """There is nothing to close."""


class Edge:
    def __init__(self, alive: Callable[[], None], trouble: Callable[[str, str], None]) -> None:
        self.alive = alive
        self.trouble = trouble

    async def take(self, inbound: Inbound) -> None:
        raise AssertionError


@pytest.fixture
async def started() -> AsyncIterator[Callable[[Adapter], Any]]:
    refs = []

    def start(adapter: Adapter) -> Any:
        refs.append(AdapterActor.start(adapter, edge=Edge, clock=lambda: 0.0, jitter=lambda: 0.0))
        return refs[-1]

    yield start
    for ref in refs:
        await ref.stop(block=False)


async def test_a_connection_that_ended_is_taken_up_again(started: Callable[[Adapter], Any]) -> None:
    adapter = Adapter(RuntimeError("odd"))
    started(adapter)
    await until(lambda: len(adapter.runs) == 2)
    assert adapter.runs[1] - adapter.runs[0] < 20


async def test_a_platform_that_wants_to_be_left_alone_is(started: Callable[[Adapter], Any]) -> None:
    adapter = Adapter(PlatformError("too many requests", retry_after_s=1.2))
    started(adapter)
    await until(lambda: len(adapter.runs) == 2)
    assert adapter.runs[1] - adapter.runs[0] >= 1.2


async def test_what_is_wrong_with_a_part_is_shown_until_it_is_over_and_the_rest_goes_on(
    started: Callable[[Adapter], Any],
) -> None:
    adapter = Adapter()
    started(adapter)
    await until(lambda: adapter.edge is not None)
    [actor] = [each for each in live_actors() if each.kind == AdapterActor.kind]
    assert adapter.edge is not None

    def shown() -> tuple[str, str]:
        view = actor.statistics()
        return view.state, view.last_error

    adapter.edge.trouble("workspace 2", "its token was revoked")
    adapter.edge.trouble("app 1", "no route")
    assert shown() == ("impaired", "workspace 2: its token was revoked; app 1: no route")
    adapter.edge.trouble("workspace 2", "")
    adapter.edge.trouble("workspace 3", "")
    assert shown() == ("impaired", "app 1: no route")
    adapter.edge.trouble("app 1", "")
    assert shown() == ("running", "")
    assert len(adapter.runs) == 1
