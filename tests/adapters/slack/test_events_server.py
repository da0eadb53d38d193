"""Over HTTP: signed requests only, and 200 only for what is on disk."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest

from hermes.adapters.slack.adapter import SlackAdapter
from hermes.adapters.slack.health import ask_all
from hermes.adapters.slack.workspace import SlackClient
from hermes.config.secret import Secret
from hermes.domain.errors import PlatformError, StoppingError
from tests.adapters.edge import FakeEdge, listening
from tests.adapters.slack.conftest import CREDENTIALS, HURRIED
from tests.support.slack_server import SlackServer, signed
from tests.support.slack_state import BOT_USER, TEAM
from tests.support.waiting import until

FORM = "application/x-www-form-urlencoded"


@pytest.fixture
async def adapter(server: SlackServer) -> AsyncIterator[SlackAdapter]:
    adapter = SlackAdapter([CREDENTIALS], listen=("127.0.0.1", 0), base_url=server.base_url, limits=HURRIED)
    yield adapter
    await adapter.close()


@pytest.fixture
async def edge(adapter: SlackAdapter) -> AsyncIterator[FakeEdge]:
    edge = FakeEdge()
    async with listening(adapter, edge):
        await until(lambda: adapter.events is not None and bool(adapter.events.address))
        yield edge


def event(text: str = "hello", ts: str = "5.1") -> dict[str, Any]:
    message = {"type": "message", "channel": "D1", "user": "UANN", "ts": ts, "text": text}
    return {"type": "event_callback", "team_id": TEAM, "event_id": "Ev1", "event": message}


async def post(adapter: SlackAdapter, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
    assert adapter.events is not None
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            adapter.events.address, data=body, headers={"Content-Type": "application/json", **headers}
        ) as answer,
    ):
        return answer.status, await answer.text()


async def test_an_event_is_taken_and_its_retries_are_the_same(adapter: SlackAdapter, edge: FakeEdge) -> None:
    body = json.dumps(event()).encode()
    for number in range(4):
        retry = {"X-Slack-Retry-Num": str(number), "X-Slack-Retry-Reason": "http_timeout"} if number else {}
        assert (await post(adapter, body, {**signed(body), **retry}))[0] == 200
    assert edge.texts == ["hello"]
    assert len(edge.offered) == 1


async def test_what_was_not_stored_is_not_confirmed(adapter: SlackAdapter, edge: FakeEdge) -> None:
    body = json.dumps(event()).encode()
    edge.refusals = [StoppingError("going")] * 9
    assert (await post(adapter, body, signed(body)))[0] == 503
    edge.refusals = []
    assert (await post(adapter, body, signed(body)))[0] == 200
    assert edge.texts == ["hello"]


async def test_the_address_is_verified(adapter: SlackAdapter, edge: FakeEdge) -> None:
    body = json.dumps({"type": "url_verification", "challenge": "abc", "token": "old"}).encode()
    status, text = await post(adapter, body, signed(body))
    assert (status, json.loads(text)) == (200, {"challenge": "abc"})


async def test_slash_commands_and_presses_come_as_forms(adapter: SlackAdapter, edge: FakeEdge) -> None:
    slash = {"command": "/hermes", "text": "status", "channel_id": "D1", "user_id": "UANN", "trigger_id": "1.t"}
    press = {
        "type": "block_actions",
        "team": {"id": TEAM},
        "user": {"id": "UANN"},
        "channel": {"id": "D1"},
        "message": {"ts": "5.1", "user": BOT_USER},
        "actions": [{"value": "token:1:blue", "action_ts": "6.0"}],
    }
    for form in ({**slash, "team_id": TEAM}, {"payload": json.dumps(press)}):
        body = urlencode(form).encode()
        assert (await post(adapter, body, {**signed(body), "Content-Type": FORM}))[0] == 200
    assert edge.texts == ["/status", "blue"]
    assert (edge.taken[1].answers, edge.taken[1].choice) == ("token", 1)


@pytest.mark.parametrize("age_s", [-330.0, 301.0, 86_400.0])
async def test_an_old_signature_is_refused(age_s: float, adapter: SlackAdapter, edge: FakeEdge) -> None:
    body = json.dumps(event()).encode()
    assert (await post(adapter, body, signed(body, at=time.time() - age_s)))[0] == 401
    assert edge.offered == []


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Slack-Signature": "v0=0", "X-Slack-Request-Timestamp": "now"},
        {"X-Slack-Signature": "v0=\u00e9", "X-Slack-Request-Timestamp": "1"},
        {"X-Slack-Signature": "v0=0", "X-Slack-Request-Timestamp": "1" * 5000},
        signed(b"another body"),
        signed(json.dumps(event()).encode(), secret="wrong"),
    ],
)
async def test_an_unsigned_request_is_refused(headers: dict[str, str], adapter: SlackAdapter, edge: FakeEdge) -> None:
    assert (await post(adapter, json.dumps(event()).encode(), headers))[0] == 401
    assert edge.offered == []


@pytest.mark.parametrize("body", [b"", b"[]", b"{"])
async def test_a_signed_request_that_says_nothing_is_a_bad_one(
    body: bytes, adapter: SlackAdapter, edge: FakeEdge
) -> None:
    assert (await post(adapter, body, signed(body)))[0] == 400


async def test_signed_body_that_is_not_text_is_refused(adapter: SlackAdapter, edge: FakeEdge) -> None:
    assert (await post(adapter, b"\xff", signed(b"\xff")))[0] == 401


async def test_a_port_that_is_taken_is_explained(adapter: SlackAdapter, edge: FakeEdge, server: SlackServer) -> None:
    assert adapter.events is not None
    port = int(adapter.events.address.split(":")[2].split("/")[0])
    other = SlackAdapter([CREDENTIALS], listen=("127.0.0.1", port), base_url=server.base_url)
    with pytest.raises(PlatformError, match=f"cannot listen on 127.0.0.1:{port}"):
        await other.run(FakeEdge())
    await other.close()


async def test_revoked_workspace_does_not_affect_others(server: SlackServer) -> None:
    server.tokens["xoxb-other"] = "T2"
    others = [CREDENTIALS, replace(CREDENTIALS, bot=Secret("xoxb-other"))]
    client = SlackClient(others, base_url=server.base_url, answer_within_s=20)
    try:
        workspaces = (await client.workspaces()).values()
        edge = FakeEdge()
        del server.tokens["xoxb-other"]
        assert len(await ask_all(workspaces, edge)) == 1
        assert list(edge.troubles) == ["workspace T2"]
        assert "rejected the token" in edge.troubles["workspace T2"]
        server.tokens["xoxb-other"] = "T2"
        assert await ask_all(workspaces, edge) == []
        assert edge.troubles == {}
        server.tokens.clear()
        assert len(await ask_all(workspaces, edge)) == 2
    finally:
        await client.close()
