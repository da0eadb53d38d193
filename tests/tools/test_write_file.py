from __future__ import annotations

import os
import stat

import pytest

from tests.tools.workbench import Workbench


async def test_a_file_is_created_with_its_directories(bench: Workbench) -> None:
    said = await bench.text("write_file", path="a/b/c.txt", content="ä\n\nz")
    assert said == f"{bench.cwd}/a/b/c.txt was created: 5 bytes, 3 lines"
    assert bench.tree() == {"a/b/c.txt": "ä\n\nz".encode()}


async def test_a_file_that_is_overwritten_keeps_its_mode_and_its_links(bench: Workbench) -> None:
    path = bench.write("run.sh", "old")
    path.chmod(0o751)
    (bench.cwd / "link").symlink_to("run.sh")
    assert "run.sh was overwritten" in await bench.text("write_file", path="link", content="new")
    assert (bench.cwd / "link").is_symlink()
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


async def test_a_reader_that_has_the_old_file_open_sees_it_whole(bench: Workbench) -> None:
    with bench.write("a.txt", "old").open() as reader:
        await bench.text("write_file", path="a.txt", content="new and longer")
        assert reader.read() == "old"


async def test_what_is_no_file_is_not_replaced(bench: Workbench) -> None:
    os.mkfifo(bench.cwd / "pipe")
    (bench.cwd / "d").mkdir()
    assert "is a directory" in await bench.problem("write_file", path="d", content="")
    assert "is a named pipe" in await bench.problem("write_file", path="pipe", content="")
    assert "is a device" in await bench.problem("write_file", path="/dev/null", content="")


@pytest.mark.parametrize("path", ["a\0b", "", "file/below", "n" * 300, "/proc/no/such", "loop"])
async def test_a_write_that_cannot_be_leaves_nothing(bench: Workbench, path: str) -> None:
    bench.write("file", "x")
    (bench.cwd / "loop").symlink_to("loop")
    said = await bench.problem("write_file", path=path, content="new")
    assert "unexpectedly" not in said
    assert bench.tree() == {"file": b"x"}


async def test_half_a_character_is_told(bench: Workbench) -> None:
    result = await bench.toolbox.run("write_file", {"path": "a", "content": "\ud800"}, bench.context)
    assert "surrogate" in result.text
    assert bench.tree() == {}


async def test_a_long_name_can_be_written(bench: Workbench) -> None:
    await bench.text("write_file", path="ä" * 127, content="x")
    assert bench.tree() == {"ä" * 127: b"x"}


async def test_a_blocked_file_is_not_written(bench: Workbench) -> None:
    secret = bench.write("secret", "hush")
    (bench.cwd / "link").symlink_to(secret)
    assert "may not be written: it is a secret" in await bench.problem("write_file", path="link", content="x")
    assert secret.read_text() == "hush"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_directory_of_others_is_a_plain_problem(bench: Workbench) -> None:
    bench.write("d/a.txt", "old")
    (bench.cwd / "d").chmod(0o555)
    denied = f"{bench.cwd}/d/a.txt: Permission denied"
    assert await bench.problem("write_file", path="d/a.txt", content="new") == denied
    assert await bench.problem("patch", path="d/a.txt", old_string="old", new_string="new") == denied
    (bench.cwd / "d").chmod(0o755)
    assert bench.tree() == {"d/a.txt": b"old"}
