"""Commands in a sandbox read the outputs and received files of their own conversation, and no others."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import pytest

from hermes.domain.ids import SessionId, TurnId
from hermes.domain.media.scope import media_scope
from hermes.domain.turn.tool_call import Gate
from hermes.media.store import MediaLimits, MediaStore
from hermes.tools.files.boxed_files import BoxedFiles
from hermes.tools.terminal.command_output import OutputLimits, fit
from hermes.tools.terminal.terminal import terminal_tool
from hermes.tools.terminal.terminal_settings import TerminalSettings
from hermes.tools.tool import ToolContext, ToolError, ToolResult
from hermes.tools.workplace import Workplace
from tests.sandbox.boxes import working_sandbox

ANN, BOB = media_scope("toy", "ann"), media_scope("toy", "bob")


async def content(text: str) -> AsyncIterator[bytes]:
    yield text.encode()


class Conversation:
    """A conversation of Ann's in a private home, with the real sandbox."""

    def __init__(self, home: Path, work: Path | None) -> None:
        self.home = home
        self.folder = home / "work" / "ann"
        self.work = work or self.folder / "files"
        self.store = MediaStore(home / "media", limits=MediaLimits(), clock=lambda: 0.0)
        settings = TerminalSettings(
            environ={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}, work_of=lambda *_: str(self.work), kept_bytes=100
        )
        self._tool = terminal_tool(settings, lambda *_, **__: Gate(), None, working_sandbox())

    @property
    def context(self) -> ToolContext:
        return ToolContext(
            session=SessionId("ann"),
            turn=TurnId("t"),
            call="call",
            platform="toy",
            folder=self.folder,
            media=self.home / "media" / ANN,
        )

    async def run(self, command: str) -> ToolResult:
        result = await self._tool.run(self.context, command=command)
        assert isinstance(result, ToolResult)
        return result


@pytest.fixture(params=["own directory", "owner's directory"])
def ann(tmp_path: Path, request: pytest.FixtureRequest) -> Conversation:
    home = tmp_path.resolve() / "home"
    home.mkdir(mode=0o700)
    work = None
    if request.param == "owner's directory":
        work = tmp_path.resolve() / "project"
        work.mkdir(mode=0o700)
    made = Conversation(home, work)
    made.folder.mkdir(mode=0o700, parents=True)
    made.work.mkdir(mode=0o700, exist_ok=True)
    return made


async def test_command_reads_long_output_of_earlier_command(ann: Conversation) -> None:
    shown = await ann.run("seq -f 'line %g' 1000")
    assert "line 500" not in shown.text
    found = await ann.run("grep -x 'line 500' " + str(ann.folder / "outputs" / "call.txt"))
    assert (found.ok, found.text.splitlines()[0]) == (True, "line 500")


async def test_command_reads_long_output_of_another_tool(ann: Conversation) -> None:
    text = "\n".join(map(str, range(5000)))
    await asyncio.to_thread(fit, text, ann.folder, "page", OutputLimits(), lambda each: each)
    found = await ann.run("tail -n 1 " + str(ann.folder / "outputs" / "page.txt"))
    assert (found.ok, found.text.splitlines()[0]) == (True, "4999")


async def test_command_reads_received_file_of_its_own_chat_only(ann: Conversation) -> None:
    own = await ann.store.keep(ANN, "1", "a.txt", content("for ann"))
    other = await ann.store.keep(BOB, "2", "b.txt", content("for bob"))
    sent = await asyncio.to_thread(ann.store.put_aside, BytesIO(b"for bob"), "b.txt")
    read = await ann.run(f"cat {own}")
    assert (read.ok, read.text.splitlines()[0]) == (True, "for ann")
    for command in (
        f"cat {other}",
        f"ls {other.parent}",
        f"cat {sent}",
        f"ls {sent.parent.parent}",
        f"ls {ann.home}/store",
    ):
        refused = await ann.run(command)
        assert not refused.ok
        assert "No such file or directory" in refused.text
    assert (await ann.run(f"ls {ann.home}/media")).text.splitlines()[0] == ANN
    assert "for bob" not in (await ann.run(f"grep -r for {ann.home}; true")).text


async def test_file_tools_read_received_file_of_their_own_chat_only(ann: Conversation) -> None:
    own = await ann.store.keep(ANN, "1", "a.txt", content("for ann"))
    other = await ann.store.keep(BOB, "2", "b.txt", content("for bob"))
    workplace = Workplace(default_cwd=str(ann.work), home=str(ann.home), hermes_home=str(ann.home))
    files = BoxedFiles(working_sandbox(), workplace)
    try:
        descriptor, _ = await files.open(ann.context, str(own))
        assert os.read(descriptor, 100) == b"for ann"
        os.close(descriptor)
        with pytest.raises(ToolError):
            await files.open(ann.context, str(other))
    finally:
        await files.close()


async def test_command_does_not_change_received_files_and_outputs(ann: Conversation) -> None:
    own = await ann.store.keep(ANN, "1", "a.txt", content("for ann"))
    for path in (own, own.parent / "new", ann.folder / "outputs" / "new"):
        refused = await ann.run(f"echo x > {path}")
        assert not refused.ok
        assert "Read-only file system" in refused.text
    assert await asyncio.to_thread(own.read_bytes) == b"for ann"


async def test_file_that_comes_later_is_read_by_the_next_command(ann: Conversation) -> None:
    assert not (await ann.run(f"ls {ann.home}/media/{ANN}")).ok
    own = await ann.store.keep(ANN, "1", "a.txt", content("for ann"))
    assert (await ann.run(f"cat {own}")).ok
