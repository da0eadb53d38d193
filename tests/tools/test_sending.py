"""A file that the model sends is put aside as it is; one that must not leave does not."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from hermes.media.store import MediaLimits, MediaStore
from hermes.tools.registry import Toolbox
from hermes.tools.sending import MOST_BYTES, send_file_tool
from hermes.tools.workplace import Workplace
from tests.tools.workbench import Workbench


@pytest.fixture
def sender(bench: Workbench, tmp_path: Path) -> Workbench:
    place = Workplace(default_cwd=str(bench.cwd), home=str(tmp_path / "home"), hermes_home=str(tmp_path / "hermes"))
    store = MediaStore(tmp_path / "hermes" / "media", limits=MediaLimits(), clock=lambda: 0.0)
    here = frozenset({bench.context.platform})
    tool = send_file_tool(place, lambda path: bench._gate(path, False), store.put_aside, here)
    bench.toolbox = Toolbox((tool,), toolsets={"default": ["send_file"]})
    return bench


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


@pytest.mark.parametrize("name", ["secret.txt", "asked.txt", "link.txt"])
async def test_secrets_are_never_sent(name: str, sender: Workbench) -> None:
    sender.write("secret.txt", "s")
    sender.write("asked.txt", "s")
    (sender.cwd / "link.txt").symlink_to(sender.cwd / "secret.txt")
    assert "may not be sent" in await sender.problem("send_file", path=name)


async def test_what_cannot_be_sent_is_explained_to_the_model(sender: Workbench, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.txt").write_text("x")
    sender.write("empty.txt", "")
    os.truncate(sender.write("huge.bin", "x"), MOST_BYTES + 1)
    os.mkfifo(sender.cwd / "pipe")
    for path, problem in (
        (str(tmp_path / "elsewhere.txt"), "only files below"),
        ("gone.txt", "gone.txt"),
        ("empty.txt", "is empty"),
        ("huge.bin", "50 MB at most"),
        ("pipe", "named pipe"),
        (".", "directory"),
    ):
        assert problem in await sender.problem("send_file", path=path)


async def test_where_nobody_takes_files_the_model_is_told(bench: Workbench, tmp_path: Path) -> None:
    place = Workplace(default_cwd=str(bench.cwd), home=str(tmp_path), hermes_home=str(tmp_path))
    tool = send_file_tool(place, lambda path: bench._gate(path, False), lambda path: path, frozenset({"elsewhere"}))
    bench.toolbox = Toolbox((tool,), toolsets={"default": ["send_file"]})
    bench.write("a.txt", "a")
    assert "not on a chat platform" in await bench.problem("send_file", path="a.txt")


async def test_what_another_conversation_made_is_not_sent(sender: Workbench, tmp_path: Path) -> None:
    other = tmp_path / "hermes" / "work" / "other" / "outputs" / "a.txt"
    other.parent.mkdir(parents=True)
    other.write_text("theirs")
    (sender.cwd / "link.txt").symlink_to(other)
    for path in (str(other), "link.txt"):
        assert "may not be sent" in await sender.problem("send_file", path=path)
