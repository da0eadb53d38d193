from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from hermes.tools.files.file_reader import read_page
from hermes.tools.tool import ToolError
from tests.tools.workbench import Workbench


async def test_lines_come_with_their_numbers_and_the_total(files: Workbench) -> None:
    files.write("a.txt", "one\r\ntwo\n\nfour")
    assert await files.text("read_file", path="a.txt") == "1|one\n2|two\n3|\n4|four\n[lines 1-4 of 4; end of file]"


async def test_pages_join_to_the_whole(files: Workbench) -> None:
    files.write("a.txt", "".join(f"line {n}\n" for n in range(1, 1_235)))
    seen, offset = [], 1
    while True:
        *lines, note = (await files.text("read_file", path="a.txt", offset=offset)).split("\n")
        seen += lines
        assert "of 1,234" in note
        if "end of file" in note:
            break
        offset = int(note.rpartition("=")[2].rstrip("]"))
    assert seen == [f"{n}|line {n}" for n in range(1, 1_235)]


async def test_a_page_stays_below_the_limit_of_outputs(files: Workbench) -> None:
    files.write("a.txt", ("ä" * 1_000 + "\n") * 300)
    text = await files.text("read_file", path="a.txt", limit=2_000)
    assert len(text.encode()) < 50_000
    assert "of 300; continue with offset=23]" in text
    assert not (files.folder / "outputs").exists()


async def test_a_huge_line_is_cut_and_the_next_one_is_found(files: Workbench) -> None:
    files.write("a.txt", b"x" * 30_000_000 + b"\nnext\n")
    first, second, note = (await files.text("read_file", path="a.txt")).split("\n")
    assert len(first) < 2_100
    assert "[the line has about 29,998,100 more bytes]" in first
    assert second == "2|next"
    assert note == "[lines 1-2 of 2; end of file]"


async def test_a_big_file_is_read_only_as_far_as_needed(files: Workbench) -> None:
    path = files.write("a.txt", "first\nsecond\n" + "x" * 9_000)
    os.truncate(path, 2**40)  # a hole: reading it to the end would take hours
    text = await files.text("read_file", path="a.txt", limit=1)
    assert text == "1|first\n[lines 1-1 of a file of 1,099,511,627,776 bytes; continue with offset=2]"


def test_a_reader_that_is_no_longer_wanted_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"text " * 3_000 + b"\n")
    os.truncate(path, 2**40)
    began = time.monotonic()
    with pytest.raises(ToolError, match="too large"):
        read_page(str(path), 500, 5, lambda: time.monotonic() - began > 0.1)


async def test_missing_line_is_an_error(files: Workbench) -> None:
    files.write("a.txt", "one\n")
    files.write("empty", "")
    assert "has only 1 lines; there is no line 5" in await files.problem("read_file", path="a.txt", offset=5)
    assert "at least 1" in await files.problem("read_file", path="a.txt", offset=0)
    assert await files.text("read_file", path="empty") == "[the file is empty]"


async def test_a_missing_file_brings_a_suggestion(files: Workbench) -> None:
    files.write("src/Config.py", "")
    assert f"Did you mean {files.cwd}/src/Config.py?" in await files.problem("read_file", path="src/confg.py")
    assert f"there is no {files.cwd}/scr. Did you mean {files.cwd}/src?" in await files.problem(
        "read_file", path="scr/deep/Config.py"
    )
    assert "does not exist" in await files.problem("read_file", path="src/Config.py/x")


async def test_a_directory_is_listed(files: Workbench) -> None:
    files.write("d/b.txt", "")
    files.write("d/sub/c.txt", "")
    (files.cwd / "d" / "link").symlink_to("nowhere")
    listed = (await files.text("read_file", path="d")).split("\n")
    assert listed == ["b.txt", "link@", "sub/", f"[{files.cwd}/d is a directory: entries 1-3 of 3]"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x89PNG\r\n\0\0", "a PNG image"),
        (b"%PDF-1.7\0", "pdftotext"),
        ("text".encode("utf-16"), "iconv"),
        (b"\0\1\2", "xxd"),
    ],
)
async def test_a_binary_file_is_refused_with_a_hint(files: Workbench, content: bytes, said: str) -> None:
    files.write("a.bin", content)
    assert said in await files.problem("read_file", path="a.bin")


async def test_bytes_that_are_no_text_are_made_storable(files: Workbench) -> None:
    files.write("a.txt", b"caf\xe9\n" + b"a" * 9_000 + b"\0\n")
    text = await files.text("read_file", path="a.txt")
    assert text.startswith("1|caf\ufffd\n")
    assert "\0" not in text


async def test_notebooks_are_plain_text(files: Workbench) -> None:
    files.write("a.ipynb", json.dumps({"cells": []}, indent=1))
    assert '2| "cells": []' in await files.text("read_file", path="a.ipynb")


async def test_what_has_no_end_or_waits_is_never_opened(files: Workbench) -> None:
    os.mkfifo(files.cwd / "pipe")
    (files.cwd / "zero").symlink_to("/dev/zero")
    assert "is a named pipe" in await files.problem("read_file", path="pipe")
    assert "is a device" in await files.problem("read_file", path="zero")
    assert "is a device" in await files.problem("read_file", path="/dev/zero")


@pytest.mark.parametrize("path", ["a\0b", "", "  ", "x" * 5_000, "d/" * 3_000, "loop/x", "/proc/self/mem"])
async def test_a_hopeless_path_is_a_plain_problem(files: Workbench, path: str) -> None:
    (files.cwd / "loop").symlink_to("loop")
    said = await files.problem("read_file", path=path)
    assert said
    assert "unexpectedly" not in said


async def test_a_name_with_half_a_character_is_a_plain_problem(files: Workbench) -> None:
    result = await files.toolbox.run("read_file", {"path": "a\ud800"}, files.context)
    assert not result.ok
    assert "not allowed in file names" in result.text


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_a_file_of_others_is_a_plain_problem(files: Workbench) -> None:
    files.write("a.txt", "x").chmod(0)
    assert await files.problem("read_file", path="a.txt") == f"{files.cwd}/a.txt: Permission denied"


async def test_links_are_resolved_before_the_gate_and_again_when_it_runs(bench: Workbench) -> None:
    secret = bench.write("secret.txt", "hush")
    plain = bench.write("plain.txt", "fine")
    link = bench.cwd / "link"
    link.symlink_to(secret)
    proposal = await asyncio.to_thread(bench.toolbox.propose, "read_file", '{"path": "link"}', bench.context)
    assert proposal.gate.reason == "it is a secret"
    assert bench.judged == [(str(secret), False)]
    link.unlink()
    link.symlink_to(plain)
    proposal = await asyncio.to_thread(bench.toolbox.propose, "read_file", '{"path": "link"}', bench.context)
    link.unlink()
    link.symlink_to(secret)
    result = await bench.toolbox.run("read_file", proposal.arguments, bench.context)
    assert result.text == "link must not be read: it is a secret."


async def test_paths_are_relative_to_where_the_shell_is(bench: Workbench) -> None:
    bench.write("sub/a.txt", "here")
    (bench.cwd.parent / "home" / "b.txt").write_text("home")
    (bench.folder / "shell.json").write_text(json.dumps({"cwd": str(bench.cwd / "sub")}))
    assert "1|here" in await bench.text("read_file", path="a.txt")
    assert "1|home" in await bench.text("read_file", path="~/b.txt")


@pytest.mark.parametrize("kept", ["", "{", "[]", '{"cwd": 5}', '{"cwd": "sub"}', '{"cwd": "/a\\u0000"}', "{}"])
async def test_a_damaged_shell_state_counts_as_none(files: Workbench, kept: str) -> None:
    files.write("a.txt", "here")
    (files.folder / "shell.json").write_text(kept)
    assert "1|here" in await files.text("read_file", path="a.txt")


async def test_a_conversation_may_read_its_own_spilled_output(bench: Workbench) -> None:
    outputs = bench.folder / "outputs"
    outputs.mkdir()
    (outputs / "secret_1.txt").write_text("spilled")
    assert "1|spilled" in await bench.text("read_file", path=str(outputs / "secret_1.txt"))
    assert "must not be written" in await bench.problem("write_file", path=str(outputs / "secret_1.txt"), content="x")
