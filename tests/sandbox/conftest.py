from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.sandbox.proxied import AnswerServer


@pytest.fixture
async def server() -> AsyncIterator[AnswerServer]:
    made = AnswerServer()
    async with await asyncio.start_server(made.handle, "127.0.0.1", 0) as listening:
        made.port = listening.sockets[0].getsockname()[1]
        yield made
