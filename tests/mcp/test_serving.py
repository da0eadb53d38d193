"""Hermes as an MCP server: raw messages over HTTP, named keys, and the SDK's own client over both transports."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from hermes.adapters.openai_api.mcp.json_rpc import RpcError, initialized, read_request
from tests.support.daemon_process import DaemonProcess


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess() as daemon:
        yield daemon


def rpc(daemon: DaemonProcess, method: str, *, key: dict[str, str] | None = None, **params: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = daemon.request("POST", "/mcp", message, **(key or {}))
    assert answer.status == 200, answer.body
    return answer.json()


def call(daemon: DaemonProcess, tool: str, *, key: dict[str, str] | None = None, **given: Any) -> Any:
    found = rpc(daemon, "tools/call", key=key, name=tool, arguments=given)["result"]
    return found["content"][0]["text"] if found["isError"] else found["structuredContent"]


def test_conversation_is_held_read_and_followed(daemon: DaemonProcess) -> None:
    position = call(daemon, "events_poll")["position"]
    sent = call(daemon, "messages_send", text="!echo pong", session_id="held", idempotency_key="k1")
    assert (sent["status"], sent["session_id"], sent["text"]) == ("answered", "held", "pong")
    again = call(daemon, "messages_send", text="!echo pong", session_id="held", idempotency_key="k1")
    assert again["text"] == "pong"
    read = call(daemon, "messages_read", session_id="held")["messages"]
    assert [each["role"] for each in read] == ["user", "assistant"]
    assert "held" in [each["id"] for each in call(daemon, "conversations_list")["conversations"]]
    events = call(daemon, "events_wait", after=position, session_id="held", timeout_s=10)
    assert events["events"][0]["session_id"] == "held"
    assert events["position"] > position
    assert call(daemon, "events_wait", timeout_s=0.1)["events"] == []


def test_approval_is_listed_and_answered(daemon: DaemonProcess) -> None:
    sent = call(daemon, "messages_send", text='!tool terminal {"command": "rm -rf /tmp/x-hermes"}', session_id="asks")
    assert sent["status"] == "waiting"
    [listed] = call(daemon, "permissions_list_open")["open"]
    assert listed["id"] == sent["id"]
    assert "needs choice" in call(daemon, "permissions_respond", id=sent["id"], answer="yes")
    assert call(daemon, "permissions_respond", id=sent["id"], choice="deny")["answered"] is True
    assert call(daemon, "permissions_list_open")["open"] == []


def test_turn_that_takes_longer_goes_on(daemon: DaemonProcess) -> None:
    sent = call(daemon, "messages_send", text="!echo late", session_id="late", wait_s=0)
    assert sent["status"] == "running"
    found = call(daemon, "events_wait", after=0, session_id="late", timeout_s=10)
    assert found["events"]


def test_named_key_reaches_its_own_conversations_only(daemon: DaemonProcess) -> None:
    made = daemon.hermes("keys", "create", "mcp-client").stdout.split()[0]
    key = {"Authorization": f"Bearer {made}"}
    call(daemon, "messages_send", text="!echo secret", session_id="owners")
    position = call(daemon, "events_poll")["position"]
    own = call(daemon, "messages_send", key=key, text="!echo mine")
    assert [each["id"] for each in call(daemon, "conversations_list", key=key)["conversations"]] == [
        own["session_id"]
    ]
    assert "there is no session" in call(daemon, "messages_read", key=key, session_id="owners")
    seen = call(daemon, "events_poll", key=key, after=0, limit=500)["events"]
    assert {each["session_id"] for each in seen} == {own["session_id"]}
    assert call(daemon, "events_poll", after=position)["events"]
    names = {each["name"] for each in rpc(daemon, "tools/list", key=key)["result"]["tools"]}
    assert "messages_send" in names
    assert not names & {"processes_list", "messages_search", "schedules_list", "channels_list"}
    assert "there is no tool" in rpc(daemon, "tools/call", key=key, name="processes_list")["error"]["message"]


def test_requests_without_a_key_and_wrong_ones_are_refused(daemon: DaemonProcess) -> None:
    assert daemon.request("POST", "/mcp", {}, Authorization="Bearer wrong").status == 401
    assert daemon.request("GET", "/mcp").status == 405
    assert rpc(daemon, "no/such")["error"]["code"] == -32601
    assert daemon.request("POST", "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202
    assert daemon.request("POST", "/mcp", [{}]).json()["error"]["code"] == -32600
    version = {"MCP_Protocol_Version": "1999-01-01"}
    assert daemon.request("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, **version).status == 400
    assert "must be" in call(daemon, "messages_send", text="x", wait_s="long")


def test_stdio_bridge_answers_every_line(daemon: DaemonProcess) -> None:
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "two", "method": "tools/list"},
    ]
    text = "".join(f"{json.dumps(each)}\n" for each in lines) + "not json\n"
    done = daemon.hermes("mcp", "serve", stdin=text)
    assert done.returncode == 0, done.stderr
    answers = {json.dumps(each.get("id")): each for each in map(json.loads, done.stdout.splitlines())}
    assert answers["1"]["result"]["protocolVersion"] == "2025-06-18"
    assert len(answers['"two"']["result"]["tools"]) == 12
    assert answers["null"]["error"]["code"] == -32700


async def test_sdk_client_over_stdio(daemon: DaemonProcess) -> None:
    mcp = pytest.importorskip("mcp")
    command = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "hermes.cli.main", "mcp", "serve"], env=daemon.environ
    )
    async with mcp.Client(command) as client:
        result = await client.call_tool("messages_send", {"text": "!echo over stdio"})
        assert result.structured_content["text"] == "over stdio"


async def test_sdk_client_over_http(daemon: DaemonProcess) -> None:
    mcp = pytest.importorskip("mcp")
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {daemon.key}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        mcp.Client(streamable_http_client(f"{daemon.address}/mcp", http_client=http)) as client,
    ):
        assert client.server_info.name == "hermes"
        result = await client.call_tool("conversation_get", {"session_id": "nope"})
        assert result.is_error


@pytest.mark.unit
@pytest.mark.parametrize("value", [None, [], "x", {}, {"jsonrpc": "2.0", "id": True, "method": "m"}])
def test_malformed_message_is_refused(value: object) -> None:
    with pytest.raises(RpcError):
        read_request(value)


@pytest.mark.unit
def test_unknown_protocol_version_gets_our_newest() -> None:
    assert initialized({"protocolVersion": "1999"}, version="1", instructions="")["protocolVersion"] == "2025-11-25"
