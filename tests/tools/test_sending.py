"""A file that the model sends is put aside as it is; one that must not leave does not."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.domain.media.scope import media_scope
from hermes.domain.turn.tool_call import Gate
from hermes.media.store import MediaLimits, MediaStore
from hermes.tools.send_file import MAX_BYTES, send_file_tool
from hermes.tools.tool import ToolError
from hermes.tools.toolbox import Toolbox
from hermes.tools.workplace import Workplace
from tests.tools.workbench import Workbench

SCOPE = media_scope("toy", "ann")


@pytest.fixture
def sender(bench: Workbench, tmp_path: Path) -> Workbench:
    place = Workplace(default_cwd=str(bench.cwd), home=str(tmp_path / "home"), hermes_home=str(tmp_path / "hermes"))
    store = MediaStore(tmp_path / "hermes" / "media", limits=MediaLimits(), clock=lambda: 0.0)
    here = frozenset({bench.context.platform})
    tool = send_file_tool(place, lambda path: bench._gate(path, False), store.put_aside, here, boxed=True)
    bench.toolbox = Toolbox((tool,), toolsets={"default": ["send_file"]})
    bench.context = replace(bench.context, media=tmp_path / "hermes" / "media" / SCOPE)
    return bench


def received(tmp_path: Path, name: str) -> str:
    """Write a file into the media store."""
    path = tmp_path / "hermes" / "media" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("received")
    return str(path)


async def test_a_copy_is_put_aside_and_the_result_says_where(sender: Workbench) -> None:
    original = sender.write("report.txt", "report")
    told = json.loads(await sender.text("send_file", path="report.txt"))
    original.unlink()
    copy = Path(told["copy"])
    assert (copy.name, await asyncio.to_thread(copy.read_bytes)) == ("report.txt", b"report")
    assert told["size_bytes"] == 6


async def test_what_the_conversation_made_can_be_sent(sender: Workbench) -> None:
    (sender.folder / "outputs").mkdir()
    (sender.folder / "outputs" / "a.txt").write_text("a")
    await sender.text("send_file", path=str(sender.folder / "outputs" / "a.txt"))


async def test_received_file_of_the_same_chat_can_be_sent(sender: Workbench, tmp_path: Path) -> None:
    await sender.text("send_file", path=received(tmp_path, f"{SCOPE}/a.txt"))


@pytest.mark.parametrize("name", [f"{media_scope('toy', 'bob')}/a.txt", "out/0123/a.txt", "a.txt", f"{SCOPE}s/a.txt"])
async def test_other_files_of_the_media_store_are_not_sent(name: str, sender: Workbench, tmp_path: Path) -> None:
    path = received(tmp_path, name)
    assert "Only files below" in await sender.problem("send_file", path=path)
    (sender.cwd / "link.txt").symlink_to(path)
    assert "Only files below" in await sender.problem("send_file", path="link.txt")
    received(tmp_path, f"{SCOPE}/own.txt")
    assert "Only files below" in await sender.problem(
        "send_file", path=str(tmp_path / "hermes" / "media" / SCOPE / ".." / name)
    )


async def test_conversation_outside_of_chats_sends_no_received_file(sender: Workbench, tmp_path: Path) -> None:
    path = received(tmp_path, f"{SCOPE}/a.txt")
    sender.context = replace(sender.context, media=None)
    assert "Only files below" in await sender.problem("send_file", path=path)


async def test_working_directory_above_the_home_of_hermes_opens_nothing_there(
    sender: Workbench, tmp_path: Path
) -> None:
    (sender.folder / "workdir").write_text(str(tmp_path))
    (tmp_path / "hermes" / "work").mkdir(parents=True)
    (tmp_path / "hermes" / "work" / "other.txt").write_text("x")
    for path in (received(tmp_path, "bob/a.txt"), str(tmp_path / "hermes" / "work" / "other.txt")):
        assert "Only files below" in await sender.problem("send_file", path=path)


async def test_directory_of_the_shell_opens_nothing(sender: Workbench, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.txt").write_text("x")
    (sender.folder / "shell.json").write_text(json.dumps({"cwd": "/"}))
    assert "Only files below" in await sender.problem("send_file", path=str(tmp_path / "elsewhere.txt"))


@pytest.mark.parametrize(
    ("path", "cwd"),
    [("/tmp/a.txt", ""), ("/tmp/x/../a.txt", ""), ("/home/agent/a.txt", ""), ("~/a.txt", ""), ("a.txt", "/tmp")],
)
async def test_file_is_sent_by_its_name_in_the_sandbox(path: str, cwd: str, sender: Workbench) -> None:
    for name in ("tmp", "home"):
        (sender.folder / name).mkdir()
        (sender.folder / name / "a.txt").write_text("inside")
    if cwd:
        (sender.folder / "shell.json").write_text(json.dumps({"cwd": cwd}))
    told = json.loads(await sender.text("send_file", path=path))
    assert await asyncio.to_thread(Path(told["copy"]).read_bytes) == b"inside"


async def test_link_of_the_sandbox_leads_nowhere_else(sender: Workbench, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.txt").write_text("x")
    (sender.folder / "tmp").mkdir()
    (sender.folder / "tmp" / "link.txt").symlink_to(tmp_path / "elsewhere.txt")
    assert "Only files below" in await sender.problem("send_file", path="/tmp/link.txt")


@pytest.mark.parametrize("swapped", ["a.txt", "inner"])
async def test_link_that_appears_after_the_check_is_not_followed(
    swapped: str, sender: Workbench, tmp_path: Path, bench: Workbench
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.txt").write_text("x")
    wanted = sender.write("inner/a.txt" if swapped == "inner" else "a.txt", "mine")
    place = Workplace(default_cwd=str(bench.cwd), home=str(tmp_path), hermes_home=str(tmp_path / "hermes"))

    def gate(path: str) -> Gate:
        (sender.cwd / swapped).rename(tmp_path / "aside")
        (sender.cwd / swapped).symlink_to(tmp_path / "other" / ("" if swapped == "inner" else "a.txt"))
        return Gate()

    tool = send_file_tool(place, gate, lambda file, name: wanted, frozenset({bench.context.platform}))
    with pytest.raises(ToolError, match=r"could not copy it|was replaced"):
        await tool.run(sender.context, path=str(wanted))


@pytest.mark.parametrize("name", ["secret.txt", "asked.txt", "link.txt"])
async def test_secrets_are_never_sent(name: str, sender: Workbench) -> None:
    sender.write("secret.txt", "s")
    sender.write("asked.txt", "s")
    (sender.cwd / "link.txt").symlink_to(sender.cwd / "secret.txt")
    assert "must not be sent" in await sender.problem("send_file", path=name)


async def test_what_cannot_be_sent_is_explained_to_the_model(sender: Workbench, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.txt").write_text("x")
    sender.write("empty.txt", "")
    os.truncate(sender.write("huge.bin", "x"), MAX_BYTES + 1)
    os.mkfifo(sender.cwd / "pipe")
    for path, problem in (
        (str(tmp_path / "elsewhere.txt"), "Only files below"),
        ("gone.txt", "gone.txt"),
        ("empty.txt", "is empty"),
        ("huge.bin", "at most 50 MB"),
        ("pipe", "named pipe"),
        (".", "directory"),
    ):
        assert problem in await sender.problem("send_file", path=path)


async def test_model_learns_that_files_cannot_be_sent_here(bench: Workbench, tmp_path: Path) -> None:
    place = Workplace(default_cwd=str(bench.cwd), home=str(tmp_path), hermes_home=str(tmp_path))
    tool = send_file_tool(
        place, lambda path: bench._gate(path, False), lambda file, name: Path(name), frozenset({"elsewhere"})
    )
    bench.toolbox = Toolbox((tool,), toolsets={"default": ["send_file"]})
    bench.write("a.txt", "a")
    assert "not on a chat platform" in await bench.problem("send_file", path="a.txt")


async def test_what_another_conversation_made_is_not_sent(sender: Workbench, tmp_path: Path) -> None:
    other = tmp_path / "hermes" / "work" / "other" / "outputs" / "a.txt"
    other.parent.mkdir(parents=True)
    other.write_text("theirs")
    (sender.cwd / "link.txt").symlink_to(other)
    for path in (str(other), "link.txt"):
        assert "Only files below" in await sender.problem("send_file", path=path)
