"""`hermes.client` against the real daemon, and the examples of its documentation."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.client import HermesClient
from tests.support.daemon_process import DaemonProcess

pytestmark = pytest.mark.timeout(120)
EXAMPLES = re.findall(
    r"```python\n(.*?)```", (Path(__file__).parents[2] / "docs/client.md").read_text(encoding="utf-8"), re.DOTALL
)


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess() as daemon:
        yield daemon


async def test_runs_events_approvals_and_sessions(daemon: DaemonProcess) -> None:
    async with HermesClient(daemon.address, daemon.key) as client:
        events = client.events(types=("approval", "run.completed", "stream"))
        assert (await anext(events)).name == "stream.opened"
        run = await client.start_run('!tool terminal {"command": "rm -rf /nothing-here"}', session_id="s")
        assert (await anext(events)).name == "approval.request"
        (question,) = await client.open_questions()
        assert (question.run_id, question.kind) == (run.id, "approval")
        await client.approve(question.id, "deny")
        assert (await client.wait_for(run.id)).status == "completed"
        assert (await anext(events)).session_id == "s"
        assert [each.id for each in (await client.runs(session_id="s")).items] == [run.id]
        await client.change_session("s", title="Mine")
        assert [each.title async for each in client.all_sessions(title="mine", limit=1)] == ["Mine"]
        assert (await client.messages("s"))[0].role == "user"
        await client.delete_session("s")


async def test_files_are_uploaded_and_downloaded(daemon: DaemonProcess) -> None:
    async with HermesClient(daemon.address, daemon.key) as client:
        file = await client.upload("a.txt", b"hello")
        assert await client.download(file.id) == b"hello"
        assert [each.id for each in await client.files()] == [file.id]
        await client.delete_file(file.id)
        assert await client.files() == []


async def test_events_and_messages_survive_a_kill(daemon: DaemonProcess) -> None:
    opened, outputs = asyncio.Event(), []
    async with HermesClient(daemon.address, daemon.key) as client, asyncio.timeout(90):

        async def follow() -> None:
            async for event in client.events(types=("run.completed", "stream"), session_id="k"):
                opened.set()
                if event.name == "run.completed":
                    outputs.append(event.fields["output"])
                if len(outputs) == 2:
                    return

        following = asyncio.create_task(follow())
        await opened.wait()
        assert (await client.chat("!echo one", session_id="k")).text == "one"
        await asyncio.to_thread(daemon.kill)
        await asyncio.to_thread(daemon.start, {"HERMES_API_PORT": daemon.address.rpartition(":")[2]})
        assert (await client.chat("!echo two", session_id="k")).text == "two"
        await following
    assert outputs == ["one", "two"]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example_of_the_documentation_runs(
    daemon: DaemonProcess, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_ADDRESS", daemon.address)
    monkeypatch.setenv("HERMES_API_KEY", daemon.key)
    exec(compile(EXAMPLES[number], f"docs/client.md {number}", "exec"), {"__name__": "__main__"})


async def test_admin_socket_serves_the_client(daemon: DaemonProcess) -> None:
    token = (daemon.home / "admin.token").read_text(encoding="utf-8").strip()
    async with HermesClient("http://hermes", token, socket=str(daemon.home / "hermes.sock")) as client:
        assert (await client.chat("!echo hi")).text == "hi"
