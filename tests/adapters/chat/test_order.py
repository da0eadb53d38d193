"""What happens in one chat is taken in order, and commands pass what a file holds up."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from hermes.adapters.chat.order import ChatOrder

KINDS = {"m": (False, False), "f": (False, True), "c": (True, False)}  # a message, one with a file, a command


class Chat:
    def __init__(self) -> None:
        self.order = ChatOrder()
        self.taken: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.tasks: list[asyncio.Task[None]] = []

    def comes(self, *names: str) -> None:
        """Each named after its kind."""
        for name in names:
            self.gates[name] = asyncio.Event()
            self.tasks.append(asyncio.create_task(self._take(name)))

    async def _take(self, name: str) -> None:
        urgent, slow = KINDS[name[0]]
        async with self.order.place(urgent=urgent, slow=slow):
            await self.gates[name].wait()
            self.taken.append(name)

    async def can_be_stored(self, *names: str) -> list[str]:
        for name in names:
            self.gates[name].set()
        for _ in range(20):
            await asyncio.sleep(0)
        return self.taken


async def test_a_command_passes_a_file_and_the_messages_behind_it_wait() -> None:
    chat = Chat()
    chat.comes("f1", "m1", "c1", "m2", "c2")
    assert await chat.can_be_stored("m1", "c1", "m2", "c2") == ["c1", "c2"]
    assert await chat.can_be_stored("f1") == ["c1", "c2", "f1", "m1", "m2"]


async def test_a_command_waits_for_what_came_before_the_file() -> None:
    chat = Chat()
    chat.comes("m1", "f1", "c1")
    assert await chat.can_be_stored("c1", "f1") == []
    assert await chat.can_be_stored("m1") == ["m1", "f1", "c1"]


async def test_a_message_waits_for_a_command_before_it() -> None:
    chat = Chat()
    chat.comes("f1", "c1", "m1")
    assert await chat.can_be_stored("f1", "m1") == ["f1"]
    assert await chat.can_be_stored("c1") == ["f1", "c1", "m1"]


async def test_abandoned_message_blocks_nothing() -> None:
    chat = Chat()
    chat.comes("m1", "m2", "c1")
    await chat.can_be_stored("m2", "c1")
    for task in chat.tasks[:2]:  # the one that is taken, and one that waits
        task.cancel()
    assert await chat.can_be_stored() == ["c1"]


@given(st.lists(st.sampled_from("mfc"), max_size=8), st.randoms(use_true_random=False))
def test_messages_keep_their_order_and_so_do_commands(kinds: list[str], chance: object) -> None:
    names = [f"{kind}{number}" for number, kind in enumerate(kinds)]

    async def run() -> list[str]:
        chat = Chat()
        chat.comes(*names)
        for name in sorted(names, key=lambda _: chance.random()):  # type: ignore[attr-defined]
            await chat.can_be_stored(name)
        await asyncio.gather(*chat.tasks)
        return chat.taken

    taken = asyncio.run(run())
    assert sorted(taken) == sorted(names)
    assert [name for name in taken if name[0] != "c"] == [name for name in names if name[0] != "c"]
    assert [name for name in taken if name[0] == "c"] == [name for name in names if name[0] == "c"]
