"""Tokens for query strings: signed, scoped, short-lived."""

from __future__ import annotations

import aiohttp
import pytest

from hermes.adapters.http.stream_token import StreamToken, TokenScope, read
from hermes.adapters.openai_api.server import ApiServer
from hermes.domain.access.role import Role
from tests.adapters.conftest import KEY, ApiHarness, logged
from tests.support.fakes import NOW

TOKEN = StreamToken(scope=TokenScope.EVENTS, key="ci", expires_at=100)


def test_token_is_read_until_it_expires() -> None:
    text = TOKEN.sign("secret")
    assert read(text, "secret", 99) == TOKEN
    assert read(text, "secret", 100) is None


@pytest.mark.parametrize("text", ["", "ht_", "ht_.", "hk_abc", "ht_W10.abc", "ht_" + "x" * 1000, "ht_é.é"])
def test_other_text_is_no_token(text: str) -> None:
    assert read(text, "secret", 0) is None


def test_changed_or_foreign_token_is_refused() -> None:
    text = TOKEN.sign("secret")
    assert read(text, "other", 0) is None
    assert all(read(text[:place] + "!" + text[place + 1 :], "secret", 0) is None for place in range(len(text)))


async def token_of(client: aiohttp.ClientSession, **fields: object) -> str:
    async with client.post("/api/tokens", json=fields) as response:
        body = await response.json()
        assert response.status == 201, body
    assert body["expires_at"] == int(NOW) + 300
    return str(body["token"])


async def status_of(client: aiohttp.ClientSession, path: str, token: str) -> int:
    async with client.get(path, params={"token": token}) as response:
        return response.status


async def test_token_opens_the_routes_of_its_scope_only(
    world: ApiHarness, api: ApiServer, client: aiohttp.ClientSession
) -> None:
    events, files = await token_of(client), await token_of(client, scope="files")
    async with aiohttp.ClientSession(api.address) as browser:
        with logged() as lines:
            assert await status_of(browser, "/api/events", events) == 200
            assert await status_of(browser, "/api/events", files) == 401
            assert await status_of(browser, "/api/sessions", events) == 401
            assert await status_of(browser, "/api/events", "ht_wrong") == 401
    assert not any(events in line or files in line for line in lines)


async def test_token_of_a_revoked_key_is_refused(world: ApiHarness, api: ApiServer) -> None:
    _, secret = await world.keys.create("ci", role=Role.USER, expires_s=None, day_tokens=0, day_usd=0)
    ci = await world.client(api, Authorization=f"Bearer {secret.reveal()}")
    token = await token_of(ci)
    async with aiohttp.ClientSession(api.address) as browser:
        assert await status_of(browser, "/api/events", token) == 200
        await world.keys.revoke("ci")
        assert await status_of(browser, "/api/events", token) == 401


async def test_owners_key_is_no_token(api: ApiServer) -> None:
    async with aiohttp.ClientSession(api.address) as browser:
        assert await status_of(browser, "/api/events", KEY) == 401
