"""Telegram brings the updates: each is confirmed after it was taken, and nobody else is listened to."""

from __future__ import annotations

import asyncio
import io
import stat
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hermes.adapters.http import webhook_listener
from hermes.adapters.telegram.adapter import TelegramAdapter
from hermes.adapters.telegram.webhook import WebhookSettings
from hermes.config.secret import Secret
from hermes.domain.errors import BusyError, PlatformError
from tests.adapters.edge import FakeEdge, listening
from tests.adapters.telegram.conftest import HURRIED
from tests.support.free_port import free_port
from tests.support.telegram_server import TOKEN, TelegramServer
from tests.support.waiting import until

HEADER = "X-Telegram-Bot-Api-Secret-Token"


@pytest.fixture
def settings() -> WebhookSettings:
    port = free_port()
    return WebhookSettings(url=f"http://127.0.0.1:{port}/telegram", host="127.0.0.1", port=port)


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    return tmp_path / "auth.telegram-webhook"


@asynccontextmanager
async def hearing(
    server: TelegramServer, edge: FakeEdge, secret_file: Path, settings: WebhookSettings | None
) -> AsyncIterator[None]:
    adapter = TelegramAdapter(
        Secret(TOKEN), base_url=server.base_url, limits=HURRIED, poll_s=1, webhook=settings, secret_file=secret_file
    )
    async with listening(adapter, edge) as task:
        await until(lambda: bool(edge.proofs) or task.done())
        yield
    await adapter.close()


async def posted(settings: WebhookSettings, secret: str, body: bytes) -> int:
    async with (
        aiohttp.ClientSession() as session,
        session.post(settings.url, data=io.BytesIO(body), headers={HEADER: secret}) as response,
    ):
        return response.status


async def test_what_telegram_brings_is_taken_and_then_confirmed(
    server: TelegramServer, settings: WebhookSettings, secret_file: Path
) -> None:
    edge = FakeEdge()
    waiting: list[list[int]] = []
    edge.before_take = lambda inbound: waiting.append(server.unconfirmed)
    server.say(7, 7, "while nobody was there")
    async with hearing(server, edge, secret_file, settings):
        await until(lambda: server.unconfirmed == [])
        for number in range(5):
            server.say(7, 7, f"number {number}")
            await until(lambda: server.unconfirmed == [])
    assert edge.texts == ["while nobody was there", *(f"number {number}" for number in range(5))]
    assert all(waiting)


async def test_a_refused_update_holds_its_chat_and_no_other(
    server: TelegramServer, settings: WebhookSettings, secret_file: Path
) -> None:
    edge = FakeEdge()
    gate = edge.gates["7"] = asyncio.Event()
    async with hearing(server, edge, secret_file, settings):
        server.say(7, 7, "slow")
        await until(lambda: len(edge.offered) == 1)
        edge.refusals = [BusyError("full")]
        server.say(8, 8, "quick")
        await until(lambda: edge.texts == ["quick"] and server.unconfirmed == [1000])
        gate.set()
        await until(lambda: server.unconfirmed == [])
    assert edge.texts == ["quick", "slow"]


async def test_an_album_is_one_message_here_too(
    server: TelegramServer, settings: WebhookSettings, secret_file: Path
) -> None:
    edge = FakeEdge()
    async with hearing(server, edge, secret_file, settings):
        for number in range(3):
            picture: dict[str, Any] = {"photo": [{"file_id": str(number)}]}
            server.say(7, 7, "", **picture, media_group_id="1")
        await until(lambda: server.unconfirmed == [])
    [taken] = edge.taken
    assert [each.file_id for each in taken.attachments] == ["0", "1", "2"]


async def test_request_without_the_secret_is_refused(
    server: TelegramServer, settings: WebhookSettings, secret_file: Path
) -> None:
    edge = FakeEdge()
    async with hearing(server, edge, secret_file, settings):
        secret = (await asyncio.to_thread(secret_file.read_text)).strip()
        good = b'{"update_id": 1}'
        assert [await posted(settings, each, good) for each in ("", "wrong", secret[:-1])] == [403] * 3
        assert await posted(settings, secret, good) == 200
        assert [await posted(settings, secret, each) for each in (b"no JSON", b"[]", b"{}")] == [400] * 3
        assert await posted(settings, secret, b"1" * (2 << 20)) == 413
    assert stat.S_IMODE((await asyncio.to_thread(secret_file.stat)).st_mode) == 0o600
    assert len(secret) >= 32
    assert edge.taken == []


async def test_webhook_secret_is_kept_and_polling_removes_the_webhook(
    server: TelegramServer, settings: WebhookSettings, secret_file: Path
) -> None:
    secrets = set()
    for _ in range(2):
        async with hearing(server, FakeEdge(), secret_file, settings):
            secrets.add(await asyncio.to_thread(secret_file.read_text))
    assert len(secrets) == 1
    assert server.webhook == settings.url
    edge = FakeEdge()
    async with hearing(server, edge, secret_file, None):
        server.say(7, 7, "hello")
        await until(lambda: edge.texts == ["hello"])
    assert server.webhook == ""
    assert not await asyncio.to_thread(secret_file.exists)


async def test_a_webhook_that_is_not_ours_is_left_alone_and_explained(
    server: TelegramServer, settings: WebhookSettings, secret_file: Path
) -> None:
    async with hearing(server, FakeEdge(), secret_file, settings):
        pass
    await asyncio.to_thread(secret_file.unlink)
    adapter = TelegramAdapter(Secret(TOKEN), base_url=server.base_url, secret_file=secret_file)
    with pytest.raises(PlatformError, match="a webhook is set for this bot"):
        await adapter.run(FakeEdge())
    await adapter.close()


async def test_what_telegram_cannot_deliver_is_shown_while_it_waits(
    server: TelegramServer, settings: WebhookSettings, secret_file: Path
) -> None:
    edge = FakeEdge()
    error = {"last_error_date": int(time.time()) + 60, "last_error_message": "Connection refused"}
    async with hearing(server, edge, secret_file, replace(settings, check_every_s=0.02)):
        server.undelivered = {**error, "pending_update_count": 3}
        await until(lambda: "webhook" in edge.troubles)
        assert edge.troubles["webhook"] == f"Telegram cannot deliver to {settings.url}: Connection refused"
        server.undelivered = error  # of which Telegram tells on, although nothing waits
        await until(lambda: edge.troubles == {})


async def test_a_port_that_is_taken_is_explained(
    server: TelegramServer, settings: WebhookSettings, secret_file: Path
) -> None:
    async with hearing(server, FakeEdge(), secret_file, settings):
        other = TelegramAdapter(Secret(TOKEN), base_url=server.base_url, webhook=settings, secret_file=secret_file)
        with pytest.raises(PlatformError, match="the webhook cannot listen on"):
            await other.run(FakeEdge())
        await other.close()


async def test_idle_and_slow_clients_of_the_webhook_are_bounded(
    server: TelegramServer, settings: WebhookSettings, secret_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_listener, "HEADER_TIMEOUT_S", 0.2)
    monkeypatch.setattr(webhook_listener, "BODY_TIMEOUT_S", 0.2)
    async with hearing(server, FakeEdge(), secret_file, settings):
        secret = (await asyncio.to_thread(secret_file.read_text)).strip()
        silent, _silent = await asyncio.open_connection(settings.host, settings.port)
        slow, writer = await asyncio.open_connection(settings.host, settings.port)
        head = f"POST /telegram HTTP/1.1\r\nHost: x\r\n{HEADER}: {secret}\r\nContent-Length: 100\r\n\r\n"
        writer.write(head.encode() + b"{")
        async with asyncio.timeout(10):
            assert (await slow.readline()).split()[1] == b"408"
            assert await silent.read() == b""
        writer.close()
        _silent.close()


async def test_a_flood_of_connections_does_not_keep_telegram_out(
    server: TelegramServer, settings: WebhookSettings, secret_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_listener, "MAX_CONNECTIONS", 8)
    edge = FakeEdge()
    async with hearing(server, edge, secret_file, settings):
        idle = [await asyncio.open_connection(settings.host, settings.port) for _ in range(20)]
        server.say(7, 7, "hello")
        await until(lambda: edge.texts == ["hello"])
        for _, writer in idle:
            writer.close()
