"""An adapter, and the fake Telegram it talks to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from hermes.adapters.telegram.adapter import TelegramAdapter
from hermes.adapters.telegram.rate_limiter import TelegramLimits
from hermes.config.secret import Secret
from tests.adapters.edge import patience_s
from tests.support.telegram_server import TOKEN, TelegramServer

HURRIED = TelegramLimits(chat_every_s=0, group_every_s=0, every_s=0)  # for tests that are not about the pace


@pytest.fixture
def server() -> Iterator[TelegramServer]:
    with TelegramServer() as server:
        yield server


@pytest.fixture
async def adapter(server: TelegramServer, request: pytest.FixtureRequest) -> AsyncIterator[TelegramAdapter]:
    adapter = TelegramAdapter(
        Secret(TOKEN), base_url=server.base_url, limits=HURRIED, poll_s=2, answer_within_s=patience_s(request)
    )
    yield adapter
    await adapter.close()
