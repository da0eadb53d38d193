"""An API server and an admin socket over a front desk in memory, and clients for both."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from loguru import logger

from hermes.adapters.admin.server import AdminServer
from hermes.adapters.http.service import Service
from hermes.adapters.openai_api.server import ApiServer, ApiSettings
from hermes.config.admin_token import read_token, token_file
from hermes.domain.ids import TurnId
from hermes.services.commands.service import CommandService
from hermes.services.keys import KeyService
from tests.support.fakes import NOW, FakeHub, FakeOperations, FakeProcesses, FakeSessions

KEY = "a-key-for-tests"
PATIENCE_S = 30.0  # with what is to come sooner or later, however busy the machine is


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiHarness:
    """Everything behind the adapters, and the means to put adapters in front of it."""

    hub: FakeHub
    desk: FakeSessions
    operations: FakeOperations
    processes: FakeProcesses
    stack: AsyncExitStack
    keys: KeyService

    async def api(self, **settings: Any) -> ApiServer:
        chosen: dict[str, Any] = {"host": "127.0.0.1", "port": 0, "key": KEY} | settings
        server = ApiServer(ApiSettings(**chosen), self.service(), self.keys)
        await server.start()
        self.stack.push_async_callback(server.stop, 0)
        return server

    async def admin(self, path: Path) -> AdminServer:
        server = AdminServer(path, self.service(), self.keys)
        await server.start()
        self.stack.push_async_callback(server.stop, 0)
        return server

    async def client(self, server: ApiServer, **headers: str) -> aiohttp.ClientSession:
        headers = {"Authorization": f"Bearer {KEY}"} | headers
        return await self.stack.enter_async_context(aiohttp.ClientSession(server.address, headers=headers))

    async def admin_client(self, path: Path) -> aiohttp.ClientSession:
        connector = aiohttp.UnixConnector(str(path))
        token = await asyncio.to_thread(read_token, token_file(path))
        client = aiohttp.ClientSession(
            "http://hermes", connector=connector, headers={"Authorization": f"Bearer {token}"}
        )
        return await self.stack.enter_async_context(client)

    def service(self) -> Service:
        return Service(
            sessions=self.desk,
            make_commands=cache(self.commands),
            hub=self.hub,
            operations=self.operations,
            processes=self.processes,
            new_turn_id=self._turn_ids(),
            clock=lambda: NOW,
        )

    def commands(self) -> CommandService:
        return CommandService(
            self.desk,
            new_turn_id=self._turn_ids(),
            clock=lambda: NOW,
            models=lambda: ("toy-1",),
            personalities=lambda: (),
            processes=self.processes,
        )

    def _turn_ids(self) -> Callable[[], TurnId]:
        numbers = itertools.count(1)
        return lambda: TurnId(f"turn-{next(numbers)}")


@pytest.fixture
async def world() -> AsyncIterator[ApiHarness]:
    hub = FakeHub()
    desk = FakeSessions(hub)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(desk.close)
        yield ApiHarness(
            hub=hub,
            desk=desk,
            operations=FakeOperations(),
            processes=FakeProcesses(),
            stack=stack,
            keys=KeyService(desk, lambda: NOW),
        )
    assert not hub.feeds, "somebody still listens"


@pytest.fixture
async def api(world: ApiHarness) -> ApiServer:
    return await world.api()


@pytest.fixture
async def client(world: ApiHarness, api: ApiServer) -> aiohttp.ClientSession:
    return await world.client(api)


def ask(text: str = "Hi", **fields: Any) -> dict[str, Any]:
    return {"model": "hermes", "messages": [{"role": "user", "content": text}]} | fields


async def chat(client: aiohttp.ClientSession, body: Any = None, **headers: str) -> tuple[int, Any, dict[str, str]]:
    """Status, parsed body and headers of one completion."""
    async with client.post("/v1/chat/completions", json=ask() if body is None else body, headers=headers) as response:
        return response.status, await response.json(), dict(response.headers)


@dataclass(frozen=True, slots=True)
class Sse:
    event: str
    data: Any


async def events(response: aiohttp.ClientResponse) -> list[Sse]:
    return [event async for event in iterate(response)]


async def iterate(response: aiohttp.ClientResponse) -> AsyncIterator[Sse]:
    block: list[str] = []
    async for line in response.content:
        if text := line.decode().rstrip("\n"):
            block.append(text)
            continue
        yield _parse(block)
        block = []


async def read_text(incoming: AsyncIterator[Sse], text: str) -> list[Sse]:
    """The events up to the one that completes this text, however many chunks it comes in."""
    received: list[Sse] = []
    while text_of(received) != text:
        received.append(await anext(incoming))
    return received


def text_of(received: Sequence[Sse]) -> str:
    chunks = [event.data for event in received if isinstance(event.data, dict) and event.data.get("choices")]
    return "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)


def _parse(block: list[str]) -> Sse:
    if block[0].startswith(":"):
        return Sse("comment", block[0][1:].strip())
    fields = dict(line.split(": ", 1) for line in block)
    data = fields["data"]
    return Sse(fields.get("event", ""), data if data == "[DONE]" else json.loads(data))


@contextmanager
def logged() -> Iterator[list[str]]:
    """The log's lines from here on, with their level and any traceback."""
    lines: list[str] = []
    sink = logger.add(lines.append, diagnose=False, format="{level} {message}")
    try:
        yield lines
    finally:
        logger.remove(sink)


async def raw(server: ApiServer, request: bytes, *, until_eof: bool = True) -> bytes:
    """What the server says to these bytes, up to the end of the connection or of the first head."""
    reader, writer = await connect(server)
    try:
        writer.write(request)
        await writer.drain()
        async with asyncio.timeout(PATIENCE_S):
            return await reader.read() if until_eof else await reader.readuntil(b"\r\n\r\n")
    finally:
        writer.close()


async def connect(server: ApiServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = server.address.removeprefix("http://").rsplit(":", 1)
    return await asyncio.open_connection(host, int(port))
