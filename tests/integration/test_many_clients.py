"""Many concurrent clients: all get an answer, and idle ones lock out no client."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.event_reader import read_events
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(180)
CLIENTS = 200


@pytest.fixture
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess() as daemon:
        yield daemon


def address_of(daemon: DaemonProcess) -> tuple[str, int]:
    host, port = daemon.address.removeprefix("http://").rsplit(":", 1)
    return host, int(port)


async def talk(daemon: DaemonProcess, clients: int) -> int:
    """How many requests of the openai package, all at once and with its default retries, are answered."""
    openai = pytest.importorskip("openai")
    async with openai.AsyncOpenAI(base_url=f"{daemon.address}/v1", api_key=daemon.key, timeout=120) as client:

        async def ask(number: int) -> bool:
            messages = [{"role": "user", "content": f"!echo {number}"}]
            reply = await client.chat.completions.create(model="hermes", messages=messages)
            return bool(reply.choices[0].message.content == str(number))

        answered = await asyncio.gather(*map(ask, range(clients)), return_exceptions=True)
    return sum(each is True for each in answered)


async def test_all_of_many_concurrent_clients_are_answered(daemon: DaemonProcess) -> None:
    assert await talk(daemon, CLIENTS) == CLIENTS


def test_idle_sockets_without_a_key_do_not_disturb_the_owner(daemon: DaemonProcess) -> None:
    sockets = [socket.create_connection(address_of(daemon)) for _ in range(64)]
    for each in sockets:
        each.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert each.recv(64).startswith(b"HTTP/1.1 200")
    assert all(daemon.ask(f"!echo {number}").text == str(number) for number in range(10))
    assert daemon.request("GET", "/health").status == 200
    for each in sockets:
        each.close()


def test_followers_leave_room_for_the_approval_they_wait_for() -> None:
    with DaemonProcess(config="api: {max_connections_per_peer: 8}\n") as daemon:
        run = daemon.request("POST", "/v1/runs", {"input": '!tool terminal {"command": "rm -rf /nothing"}'}).json()
        path = f"/v1/runs/{run['run_id']}/events"
        followers = [read_events(daemon, path) for _ in range(8)]
        for each in followers:
            assert next(each)[0] == "run.accepted"
        (asked,) = eventually(lambda: daemon.request("GET", "/api/approvals").json()["approvals"])
        answered = daemon.request("POST", f"/api/approvals/{asked['id']}", {"choice": "deny"})
        assert answered.status == 200
        for each in followers:
            assert [name for name, _ in each][-1] == "run.completed"
