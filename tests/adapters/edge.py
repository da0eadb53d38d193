"""A stand-in for what stores what comes in from a chat platform."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from hermes.adapters.chat.speaker import for_model
from hermes.domain.errors import HermesError
from hermes.domain.source import Place
from hermes.domain.text.fence import without_fences
from hermes.ports.chat import ChatAdapter, Inbound

DEADLINE_S = 30.0


class FakeEdge:
    def __init__(self) -> None:
        self.taken: list[Inbound] = []
        self.offered: list[Inbound] = []
        self.moved: dict[str, str] = {}  # what chats were called before, by what they are called now
        self.proofs = 0
        self.troubles: dict[str, str] = {}  # by part
        self.notes: dict[str, bytes] = {}
        self.aside = ""  # for whoever did it alone
        self.refusals: list[HermesError] = []  # raised first, one an offer
        self.gates: dict[str, asyncio.Event] = {}  # by chat: what is said there waits for it
        self.before_take: Callable[[Inbound], None] = lambda inbound: None

    def alive(self) -> None:
        self.proofs += 1

    def trouble(self, part: str, problem: str) -> None:
        if problem:
            self.troubles[part] = problem
        else:
            self.troubles.pop(part, None)

    async def chat_moved(self, old: str, new: str) -> None:
        self.moved[new] = old

    async def former_id(self, chat: str) -> str:
        return self.moved.get(chat, "")

    async def places(self, platform: str, most: int) -> list[Place]:
        return [each.place for each in self.taken[-most:] if each.place.platform == platform]

    async def noted(self, name: str) -> bytes | None:
        return self.notes.get(name)

    async def note(self, name: str, value: bytes) -> None:
        self.notes[name] = value

    async def take(self, inbound: Inbound) -> str:
        self.offered.append(inbound)
        self.before_take(inbound)
        await asyncio.sleep(0)
        if inbound.place.chat in self.gates:
            await self.gates[inbound.place.chat].wait()
        if self.refusals:
            raise self.refusals.pop(0)
        self.taken.append(inbound)
        return self.aside

    @property
    def texts(self) -> list[str]:
        """As a model is shown them in a private chat, without the marks of fences."""
        return [without_fences(for_model(each, shared=False, marker="0").text) for each in self.taken]


class FileEdge(FakeEdge):
    """Where a file takes until it may be there."""

    def __init__(self) -> None:
        super().__init__()
        self.may = asyncio.Event()

    async def take(self, inbound: Inbound) -> str:
        if inbound.attachments:
            await self.may.wait()
        return await super().take(inbound)


def patience_s(request: pytest.FixtureRequest) -> float:
    """With answers: little where the test's `fault` keeps one back, as a busy machine may be as slow by itself."""
    callspec = getattr(request.node, "callspec", None)
    fault = callspec.params.get("fault") if callspec is not None else None
    return 1.0 if getattr(fault, "delay_s", 0) else 20.0


@asynccontextmanager
async def listening(adapter: ChatAdapter, edge: FakeEdge) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(adapter.run(edge))
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, HermesError):
            await task
