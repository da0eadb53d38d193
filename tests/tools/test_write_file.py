from __future__ import annotations

import os
import stat

import pytest

from tests.tools.workbench import Workbench


async def test_a_file_is_created_with_its_directories(files: Workbench) -> None:
    said = await files.text("write_file", path="a/b/c.txt", content="ä\n\nz")
    assert said == f"{files.cwd}/a/b/c.txt was created: 5 bytes, 3 lines"
    assert files.tree() == {"a/b/c.txt": "ä\n\nz".encode()}


async def test_a_file_that_is_overwritten_keeps_its_mode_and_its_links(files: Workbench) -> None:
    path = files.write("run.sh", "old")
    path.chmod(0o751)
    (files.cwd / "link").symlink_to("run.sh")
    assert "run.sh was overwritten" in await files.text("write_file", path="link", content="new")
    assert (files.cwd / "link").is_symlink()
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


async def test_an_overwritten_file_loses_setuid_and_setgid(files: Workbench) -> None:
    path = files.write("run.sh", "old")
    path.chmod(0o6751)
    await files.text("write_file", path="run.sh", content="new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


async def test_a_reader_that_has_the_old_file_open_sees_it_whole(files: Workbench) -> None:
    with files.write("a.txt", "old").open() as reader:
        await files.text("write_file", path="a.txt", content="new and longer")
        assert reader.read() == "old"


async def test_what_is_no_file_is_not_replaced(files: Workbench) -> None:
    os.mkfifo(files.cwd / "pipe")
    (files.cwd / "d").mkdir()
    assert "is a directory" in await files.problem("write_file", path="d", content="")
    assert "is a named pipe" in await files.problem("write_file", path="pipe", content="")
    assert "is a device" in await files.problem("write_file", path="/dev/null", content="")


@pytest.mark.parametrize("path", ["a\0b", "", "file/below", "n" * 300, "/proc/no/such", "loop"])
async def test_a_write_that_cannot_be_leaves_nothing(files: Workbench, path: str) -> None:
    files.write("file", "x")
    (files.cwd / "loop").symlink_to("loop")
    said = await files.problem("write_file", path=path, content="new")
    assert "unexpectedly" not in said
    assert files.tree() == {"file": b"x"}


async def test_truncated_character_is_reported(files: Workbench) -> None:
    result = await files.toolbox.run("write_file", {"path": "a", "content": "\ud800"}, files.context)
    assert "surrogate" in result.text
    assert files.tree() == {}


async def test_a_long_name_can_be_written(files: Workbench) -> None:
    await files.text("write_file", path="ä" * 127, content="x")
    assert files.tree() == {"ä" * 127: b"x"}


async def test_a_blocked_file_is_not_written(bench: Workbench) -> None:
    secret = bench.write("secret", "hush")
    (bench.cwd / "link").symlink_to(secret)
    assert "must not be written: it is a secret" in await bench.problem("write_file", path="link", content="x")
    assert secret.read_text() == "hush"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_directory_of_others_is_a_plain_problem(files: Workbench) -> None:
    files.write("d/a.txt", "old")
    (files.cwd / "d").chmod(0o555)
    denied = f"{files.cwd}/d/a.txt: Permission denied"
    assert await files.problem("write_file", path="d/a.txt", content="new") == denied
    assert await files.problem("patch", path="d/a.txt", old_string="old", new_string="new") == denied
    (files.cwd / "d").chmod(0o755)
    assert files.tree() == {"d/a.txt": b"old"}
