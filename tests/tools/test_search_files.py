"""What is said here of searches holds with ripgrep and without; where it is not installed, a stand-in plays it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from hermes.tools.files import search_worker
from hermes.tools.files.search_files import FileQuery, search
from tests.tools.workbench import Workbench

RIPGREP = shutil.which("rg")


@pytest.fixture(
    params=["worker", pytest.param("rg", marks=pytest.mark.skipif(not RIPGREP, reason="no ripgrep here"))]
)
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    if request.param == "rg" and RIPGREP:
        (programs / "rg").symlink_to(RIPGREP)
    monkeypatch.setenv("PATH", str(programs))


def a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    """Something on the path that calls itself rg."""
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "rg"
    program.write_text(f"#!{sys.executable}\n{source}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))


def a_tree(files: Workbench) -> None:
    files.write("a.py", "import os\n\ndef alpha():\n    return 1\n")
    files.write("b/c.py", "def beta():\n    return alpha()\n")
    files.write("b/d.txt", "alpha, in words\r\n")
    files.write(".github/x.yml", "alpha: 1\n")
    files.write(".git/config", "alpha\n")
    files.write("data.bin", b"alpha\0\n")
    files.write("late.bin", b"alpha\n" + b"x" * 100_000 + b"\0\n")
    files.write("build/out.py", "alpha\n")
    files.write("b/kept.log", "alpha\n")
    files.write("b/lost.log", "alpha\n")
    files.write(".gitignore", "/build/\n*.log\n!kept.log\n# alpha\n")


@pytest.mark.usefixtures("either")
async def test_lines_are_found_in_the_order_of_paths_without_what_is_ignored(files: Workbench) -> None:
    a_tree(files)
    assert (await files.text("search_files", pattern="alpha")).splitlines() == [
        ".github/x.yml:1:alpha: 1",
        ".gitignore:4:# alpha",
        "a.py:3:def alpha():",
        "b/c.py:2:    return alpha()",
        "b/d.txt:1:alpha, in words",
        "b/kept.log:1:alpha",
    ]


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pattern": r"^def \w+"}, ["a.py:3:def alpha():", "b/c.py:1:def beta():"]),
        ({"pattern": "words$"}, ["b/d.txt:1:alpha, in words"]),
        ({"pattern": "alpha", "file_glob": "*.py", "output_mode": "files"}, ["a.py", "b/c.py"]),
        (
            {"pattern": "alpha", "file_glob": "*.{py,txt}", "output_mode": "count"},
            ["a.py:1", "b/c.py:1", "b/d.txt:1"],
        ),
        ({"pattern": "alpha", "file_glob": "b/*.py", "output_mode": "files"}, ["b/c.py"]),
        ({"pattern": "alpha", "file_glob": "*.log", "output_mode": "files"}, ["b/kept.log"]),
        ({"pattern": "alpha", "path": "b", "output_mode": "files"}, ["b/c.py", "b/d.txt", "b/kept.log"]),
        ({"pattern": "return", "path": "a.py"}, ["a.py:4:    return 1"]),
        ({"pattern": "(?<=return )alpha"}, ["b/c.py:2:    return alpha()"]),
        ({"pattern": "nowhere"}, ["[no results]"]),
        (
            {"pattern": "return", "context_lines": 1},
            [
                "a.py-3-def alpha():",
                "a.py:4:    return 1",
                "--",
                "b/c.py-1-def beta():",
                "b/c.py:2:    return alpha()",
            ],
        ),
        ({"pattern": "*.py", "target": "files"}, ["a.py", "b/c.py"]),
        ({"pattern": "b/**", "target": "files"}, ["b/c.py", "b/d.txt", "b/kept.log"]),
        ({"pattern": "**/[c-d].*", "target": "files"}, ["b/c.py", "b/d.txt"]),
        ({"pattern": "?.py", "target": "files", "output_mode": "count"}, ["a.py", "b/c.py"]),
    ],
)
async def test_a_search_can_be_narrowed(files: Workbench, arguments: dict[str, Any], expected: list[str]) -> None:
    a_tree(files)
    assert (await files.text("search_files", **arguments)).splitlines() == expected


@pytest.mark.usefixtures("either")
async def test_pages_of_results_join_to_the_whole(files: Workbench) -> None:
    for number in range(10):
        files.write(f"{number}.txt", "hit\nmiss\nhit\n")
    seen: list[str] = []
    offset = 0
    while True:
        *lines, last = (await files.text("search_files", pattern="hit", limit=7, offset=offset)).splitlines()
        more = re.fullmatch(r"\[more results: continue with offset=(\d+)\]", last)
        seen += lines if more else [*lines, last]
        if not more:
            break
        offset = int(more[1])
    assert seen == [f"{number}.txt:{line}:hit" for number in range(10) for line in (1, 3)]
    names = await files.text("search_files", pattern="hit", output_mode="files", limit=2, offset=3)
    assert names.splitlines() == ["3.txt", "4.txt", "[more results: continue with offset=5]"]
    assert "at that offset" in await files.text("search_files", pattern="hit", offset=99)


@pytest.mark.usefixtures("either")
async def test_context_of_skipped_matches_is_skipped(files: Workbench) -> None:
    files.write("a.txt", "hit\nx\ny\nz\nhit\ntail")
    text = await files.text("search_files", pattern="hit", context_lines=1, offset=1)
    assert text.splitlines() == ["a.txt-4-z", "a.txt:5:hit", "a.txt-6-tail"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.usefixtures("either")
async def test_what_may_not_be_read_is_passed_over(files: Workbench) -> None:
    files.write("a/x.txt", "hit\n")
    files.write("b.txt", "hit\n").chmod(0)
    files.write("c.txt", "hit\n")
    (files.cwd / "a").chmod(0)
    assert await files.text("search_files", pattern="hit") == "c.txt:1:hit"
    (files.cwd / "a").chmod(0o755)


@pytest.mark.usefixtures("either")
async def test_protected_files_are_left_out_and_counted(bench: Workbench) -> None:
    bench.write("plain", "alpha\n")
    bench.write("d/secret_key", "alpha\n")
    bench.write("asked", "alpha\n")
    for arguments in ({"pattern": "alpha"}, {"pattern": "*", "target": "files"}):
        text = await bench.text("search_files", **arguments)
        assert text.startswith("plain")
        assert text.endswith("[2 protected files were skipped]")
        assert "secret" not in text
    assert "must not be read" in await bench.problem("search_files", pattern="a", path="d/secret_key")


@pytest.mark.usefixtures("either")
async def test_hostile_trees_are_searched_all_the_same(files: Workbench) -> None:
    deep = "/".join(["d" * 50] * 30)
    files.write(f"{deep}/deep.txt", "needle\n")
    files.write("huge.txt", b"needle" + b"x" * 20_000_000 + b"\nneedle\n")
    files.write(b"caf\xe9.txt".decode("utf-8", "surrogateescape"), b"needle \xff\n")
    (files.cwd / "loop").symlink_to(files.cwd)
    (files.cwd / "self").symlink_to("self")
    os.mkfifo(files.cwd / "pipe")
    lines = (await files.text("search_files", pattern="needle")).splitlines()
    assert lines[0] == "caf\ufffd.txt:1:needle \ufffd"
    assert lines[1] == f"{deep}/deep.txt:1:needle"
    assert lines[2].startswith("huge.txt:1:needlexxx")
    assert len(lines[2]) < 600
    assert lines[3:] == ["huge.txt:2:needle"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"pattern": "("}, "not a valid regular expression"),
        ({"pattern": "a\0"}, "no NUL"),
        ({"pattern": "a" * 20_000}, "at most 10,000 characters"),
        ({"pattern": "a", "path": "nowhere"}, "does not exist"),
        ({"pattern": "a", "path": "pipe"}, "is a named pipe"),
        ({"pattern": "a", "path": "/dev/zero"}, "is a device"),
        ({"pattern": "a", "path": "loop"}, "symbolic links"),
    ],
)
@pytest.mark.usefixtures("either")
async def test_a_search_that_cannot_be_is_explained(files: Workbench, arguments: dict[str, str], said: str) -> None:
    os.mkfifo(files.cwd / "pipe")
    (files.cwd / "loop").symlink_to("loop")
    assert said in await files.problem("search_files", **arguments)


def children() -> list[psutil.Process]:
    """But for multiprocessing's own helper, which other tests in this process may have begun, and what has ended."""
    found = []
    for each in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # collected while it is looked at
            if each.status() != psutil.STATUS_ZOMBIE and "resource_tracker" not in " ".join(each.cmdline()):
                found.append(each)
    return found


async def until_there_is_a_child() -> None:
    async with asyncio.timeout(20):
        while not await asyncio.to_thread(children):  # noqa: ASYNC110 - another process sets no event
            await asyncio.sleep(0.01)


@pytest.mark.usefixtures("either")
async def test_a_cancelled_search_ends_its_process(bench: Workbench) -> None:
    bench.write("a.txt", "a" * 40 + "\n")
    # Without look-around ripgrep would be done at once: this one is for the worker in any case, and takes ages.
    task = asyncio.ensure_future(bench.call("search_files", pattern="(?=a)(a+)+$b"))
    await until_there_is_a_child()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(children) == []


async def test_a_search_ends_when_its_time_is_up(files: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write("a.txt", "hit\n")
    files.write("b.txt", "a" * 60 + "\n")
    query = FileQuery(root=str(files.cwd), pattern="hit|(?=a)(a+)+$b", glob=None)
    asked: list[str] = []

    def allowed(path: str) -> bool:
        asked.append(path)
        return True

    searching = asyncio.create_task(search(query, allowed, deadline_s=40))
    async with asyncio.timeout(30):
        while len(asked) < 2:  # noqa: ASYNC110 - for the line, and for the file when it is done
            await asyncio.sleep(0.01)
    loop = asyncio.get_running_loop()
    now = loop.time
    monkeypatch.setattr(loop, "time", lambda: now() + 40)
    found = await searching
    assert found.timed_out
    assert [line.text for line in found.lines] == ["hit"]


@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("[ab].txt", ["a.txt", "b.txt"]),
        ("[!ab].txt", ["c.txt"]),
        ("[^ab].txt", ["c.txt"]),
        ("[]x]*", ["]y"]),
        ("\\[*", ["[z"]),
        ("[]", ["[no results]"]),
        ("{a,{b,c}}.txt", ["a.txt", "b.txt", "c.txt"]),
        ("./a.*", ["a.txt"]),
        ("d/*", ["[no results]"]),
        ("d/**", ["d/e/f"]),
        ("**/f", ["d/e/f"]),
        ("d/**/f", ["d/e/f"]),
    ],
)
async def test_globs_mean_what_they_mean_elsewhere(files: Workbench, glob: str, names: list[str]) -> None:
    for name in ("a.txt", "b.txt", "c.txt", "]y", "[z", "d/e/f"):
        files.write(name, "")
    assert (await files.text("search_files", pattern=glob, target="files")).splitlines() == names


async def test_a_repository_inside_of_another_has_only_its_own_rules(files: Workbench) -> None:
    files.write(".git/HEAD", "")
    files.write(".gitignore", "*.log\n[\nsub/only/\n\\#odd\n")
    files.write("inner/.git/HEAD", "")
    for name in ("a.log", "inner/a.log", "sub/only/x", "sub/a.log", "other/only/x", "#odd"):
        files.write(name, "")
    listed = await files.text("search_files", pattern="*", target="files")
    assert listed.splitlines() == [".gitignore", "inner/a.log", "other/only/x"]
    assert await files.text("search_files", pattern="*", target="files", path="sub") == "[no results]"


STAND_IN = """
import json, os, subprocess, sys
asked = {argument.partition("=")[0]: argument.partition("=")[2] for argument in sys.argv}
request = {"root": sys.argv[-1], "pattern": asked["--regexp"], "context": int(asked["--context"])}
request["glob"] = asked["--type-add"].removeprefix("wanted:") if "--type-add" in asked else None
worker = [sys.executable, "-I", "-S", WORKER]
sys.exit(subprocess.run(worker, input=json.dumps(request), text=True).returncode)
"""


async def test_ripgrep_is_used_when_it_is_there(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "used"
    source = STAND_IN.replace("WORKER", repr(search_worker.__file__))
    a_program(tmp_path, monkeypatch, f"open({str(mark)!r}, 'w').close()\n{source}")
    a_tree(bench)
    found = await bench.text("search_files", pattern="def", file_glob="*.py")
    assert found.splitlines() == ["a.py:3:def alpha():", "b/c.py:1:def beta():"]
    assert mark.exists()


@pytest.mark.parametrize(
    "source",
    [
        "raise SystemExit(2)",
        "print('x' * 3_000_000)",
        "print('no json')",
        "print('{}')",
        "print('[]')",
    ],
)
async def test_what_ripgrep_cannot_do_the_worker_does(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    a_program(tmp_path, monkeypatch, source)
    bench.write("a.txt", "hit\n")
    assert await bench.text("search_files", pattern="hit") == "a.txt:1:hit"


async def test_a_program_that_never_ends_is_ended_when_there_is_enough(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = {"path": {"text": str(bench.cwd / "a")}, "lines": {"text": "hit\n"}, "line_number": 1}
    line = json.dumps({"type": "match", "data": event})
    a_program(tmp_path, monkeypatch, f"while True: print({line!r}, flush=True)")
    text = await bench.text("search_files", pattern="hit", limit=1)
    assert text.splitlines()[-1] == "[more results: continue with offset=1]"
    assert await asyncio.to_thread(children) == []


async def test_the_search_gets_nothing_of_the_daemons_environment(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    a_program(tmp_path, monkeypatch, f"import os\nopen({str(seen)!r}, 'w').write(repr(dict(os.environ)))")
    monkeypatch.setenv("SOME_TOKEN", "hunter2")
    await bench.text("search_files", pattern="x")
    assert "hunter2" not in seen.read_text()


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    yield
    deadline = time.monotonic() + 20  # a sandbox that was killed ends a moment later
    while children() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert children() == []
