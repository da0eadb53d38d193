"""Network of background sandboxes, with real processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.domain.process.process import FailedStart, Handle, ProcessSpec
from hermes.domain.process.sandbox_launch import Box
from hermes.processes.shim.member import children
from hermes.sandbox.init import find_init
from hermes.sandbox.network.network import SandboxNetwork
from tests.processes.stage import ProcessFixture
from tests.sandbox.boxes import working_sandbox

COMMANDS = 50
DELAYED = ("/bin/sh", "-c", 'sleep 0.3; exec "$@"', "delay")  # a child that comes before bubblewrap's init


@pytest.fixture
async def network() -> AsyncIterator[SandboxNetwork]:
    made = SandboxNetwork(frozenset())
    yield made
    await made.close()


@pytest.fixture
def stage(tmp_path: Path) -> ProcessFixture:
    return ProcessFixture(tmp_path / "processes")


def networked_box() -> Box:
    sandbox = working_sandbox()
    return sandbox.box(sandbox.plan(None, network=True))


def run(stage: ProcessFixture, name: str, box: Box, *argv: str) -> Handle:
    started = stage.start(ProcessSpec(id=name, argv=argv, cwd="/", environ={"PATH": os.environ["PATH"]}, box=box))
    assert not isinstance(started, FailedStart), started.reason
    return started


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def test_process_that_is_not_the_init_is_not_taken_for_it(stage: ProcessFixture) -> None:
    box = networked_box()
    handle = run(stage, "p", replace(box, prefix=(*DELAYED, *box.prefix)), "sleep", "30")
    try:
        [early] = children(handle.pid) or [0]
        found = find_init(handle.pid, 10)
        assert found is not None
        assert found != early
        assert Path(f"/proc/{found}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()
    finally:
        stage.clear()


def test_monitor_that_ended_has_no_init(stage: ProcessFixture) -> None:
    handle = run(stage, "p", networked_box(), "true")
    stage.ended(handle)
    assert find_init(handle.pid, 10) is None


def test_state_of_a_process_contains_its_network(stage: ProcessFixture) -> None:
    box = replace(networked_box(), granted_hosts=frozenset({"b.example", "a.example"}))
    handle = run(stage, "p", box, "true")
    stage.ended(handle)
    found = stage.find("p")
    assert isinstance(found, Handle)
    assert (found.network, found.hosts) == (True, ("a.example", "b.example"))
    plain = run(stage, "q", replace(box, network=False, granted_hosts=frozenset()), "true")
    stage.ended(plain)
    assert (plain.network, plain.hosts) == (False, ())


@pytest.mark.parametrize("command", [("sleep", "0.2"), ("true",)])
async def test_followed_sandboxes_leave_no_descriptors(
    stage: ProcessFixture, network: SandboxNetwork, command: tuple[str, ...]
) -> None:
    box = await asyncio.to_thread(networked_box)

    async def one(name: str, *argv: str) -> None:
        handle = await asyncio.to_thread(run, stage, name, box, *argv)
        with suppress(OSError):  # it ended meanwhile
            await network.follow_monitor(handle.pid)
        await asyncio.to_thread(stage.ended, handle)

    await one("first", "sleep", "1")  # the helper that opens sockets stays
    before = await asyncio.to_thread(descriptors)
    for number in range(COMMANDS):
        await one(f"p{number}", *command)
    async with asyncio.timeout(10):
        while await asyncio.to_thread(descriptors) > before:  # noqa: ASYNC110 - sockets close by themselves
            await asyncio.sleep(0.02)
