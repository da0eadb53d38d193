from __future__ import annotations

import asyncio
import json
import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.domain.turn.tool_call import Verdict
from hermes.tools.files.patch import apply, plan_patch, plan_replace
from hermes.tools.files.v4a import Hunk, Update, parse
from hermes.tools.tool import ToolError
from tests.tools.workbench import Workbench


def a_patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


async def test_a_replacement_answers_with_a_diff(files: Workbench) -> None:
    files.write("a.py", "one\ntwo\nthree\n")
    said = await files.text("patch", path="a.py", old_string="two", new_string="2")
    assert said == "changed in 1 place\n--- a.py\n+++ a.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"
    assert files.tree() == {"a.py": b"one\n2\nthree\n"}


async def test_a_fuzzy_replacement_says_what_was_forgiven(files: Workbench) -> None:
    files.write("a.py", "if x:\n    go( 1 )\n    go( 1 )\n")
    said = await files.text("patch", path="a.py", old_string="go(  1  )", new_string="stop()", replace_all=True)
    assert said.startswith("changed in 2 places (runs of space ignored)")
    assert files.tree() == {"a.py": b"if x:\n    stop()\n    stop()\n"}


async def test_line_ends_modes_and_foreign_bytes_are_kept(files: Workbench) -> None:
    path = files.write("a.txt", b"\xef\xbb\xbfcaf\xe9\r\none\r\ntwo\r\n")
    path.chmod(0o640)
    await files.text("patch", path="a.txt", old_string="one\ntwo\n", new_string="1\n2\n3\n")
    assert path.read_bytes() == b"\xef\xbb\xbfcaf\xe9\r\n1\r\n2\r\n3\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"path": "a.txt", "old_string": "x"}, "needs the argument new_string"),
        ({"old_string": "x", "new_string": "y"}, "needs the argument path"),
        ({"mode": "patch"}, "needs the argument patch"),
        ({"mode": "patch", "patch": "hello"}, "must begin with"),
        ({"path": "b.txt", "old_string": "x", "new_string": "y"}, "Did you mean"),
        ({"path": "a.txt", "old_string": "zz", "new_string": "y"}, "not found"),
        ({"path": "bin", "old_string": "zz", "new_string": "y"}, "is binary"),
        ({"path": ".", "old_string": "zz", "new_string": "y"}, "is a directory"),
        ({"path": "pipe", "old_string": "zz", "new_string": "y"}, "is a named pipe"),
        ({"path": "a\0", "old_string": "zz", "new_string": "y"}, "NUL"),
    ],
)
async def test_a_replacement_that_cannot_be_changes_nothing(
    files: Workbench, arguments: dict[str, str], said: str
) -> None:
    files.write("a.txt", "text\n")
    files.write("bin", b"\0")
    os.mkfifo(files.cwd / "pipe")
    assert said in await files.problem("patch", **arguments)
    assert files.tree() == {"a.txt": b"text\n", "bin": b"\0"}


async def test_a_patch_updates_adds_moves_and_deletes(files: Workbench) -> None:
    files.write("a.py", "def f():\n    one\n    two\n\ndef g():\n    one\n    two\n")
    files.write("run.sh", "old\n").chmod(0o755)
    files.write("gone.txt", "bye\n")
    said = await files.text(
        "patch",
        mode="patch",
        patch=a_patch(
            "*** Update File: a.py",
            "@@ def g():",
            "     one",
            "-    two",
            "+    2",
            "+    3",
            "*** Update File: run.sh",
            "*** Move to: bin/run",
            "-old",
            "+new",
            "*** Add File: new/n.txt",
            "+n",
            "*** Delete File: gone.txt",
        ),
    )
    assert said.startswith("5 files changed\n--- a.py\n+++ a.py\n")
    assert "--- /dev/null\n+++ new/n.txt\n" in said
    assert "--- gone.txt\n+++ /dev/null\n" in said
    assert files.tree() == {
        "a.py": b"def f():\n    one\n    two\n\ndef g():\n    one\n    2\n    3\n",
        "bin/run": b"new\n",
        "new/n.txt": b"n\n",
    }
    assert stat.S_IMODE((files.cwd / "bin/run").stat().st_mode) == 0o755


async def test_a_later_part_sees_what_an_earlier_one_made(files: Workbench) -> None:
    text = a_patch("*** Add File: a", "+x", "*** Update File: a", "-x", "+y", "*** Update File: a", "-y", "+z")
    await files.text("patch", mode="patch", patch=text)
    assert files.tree() == {"a": b"z\n"}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["*** Update File: b.txt", "-nothing like it", "+y"], "part 1 for"),
        (["*** Update File: b.txt", "-same", "+y"], "2 times, at lines 1, 3"),
        (["*** Update File: b.txt", "@@ no such", "-same", "+y"], "anchor line 'no such'"),
        (["*** Update File: c.txt", "-same", "+y"], "does not exist"),
        (["*** Add File: b.txt", "+y"], "already exists"),
        (["*** Delete File: c.txt"], "does not exist"),
        (["*** Update File: b.txt", "*** Move to: a.txt"], "already exists"),
        (["*** Add File: b.txt/below", "+y"], "Not a directory"),
        (["*** Add File: /proc/no/such/file", "+y"], "No such file"),
        (["*** Add File: new/deep/x", "+y", "*** Delete File: /proc/self/status"], "Operation not permitted"),
    ],
)
async def test_when_one_file_cannot_be_changed_none_is(files: Workbench, lines: list[str], said: str) -> None:
    files.write("a.txt", "one\n").chmod(0o751)
    files.write("b.txt", "same\nother\nsame\n")
    before = files.tree()
    text = a_patch("*** Update File: a.txt", "-one", "+two", *lines)
    assert said in await files.problem("patch", mode="patch", patch=text)
    assert files.tree() == before
    assert sorted(each.name for each in files.cwd.iterdir()) == ["a.txt", "b.txt"]
    assert stat.S_IMODE((files.cwd / "a.txt").stat().st_mode) == 0o751


async def test_the_gate_judges_every_file_of_a_patch(bench: Workbench) -> None:
    text = a_patch(
        *["*** Add File: plain", "+x", "*** Add File: asked1", "+x"],
        *["*** Update File: a", "*** Move to: asked2"],
    )
    given_json = json.dumps({"mode": "patch", "patch": text})
    proposal = await asyncio.to_thread(bench.toolbox.propose, "patch", given_json, bench.context)
    assert proposal.gate.verdict is Verdict.ASK
    assert proposal.gate.rules == ("asked1", "asked2")
    assert [path for path, _ in bench.judged] == [
        f"{bench.cwd}/{name}" for name in ("plain", "asked1", "a", "asked2")
    ]
    assert not proposal.parallel


def test_file_changed_by_another_program_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("one\n")
    change, _ = plan_replace(str(path), "one", "two", every=False)
    path.write_text("another\n")
    with pytest.raises(ToolError, match="another program"):
        apply([change])
    assert path.read_text() == "another\n"


def test_a_part_at_the_end_and_one_without_old_lines(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("x\ny\nx")
    text = a_patch("*** Update File: a", "@@ y", "+after y", "@@", "-x", "+z", "*** End of File", "@@", "+last")
    [change] = plan_patch(parse(text), lambda name: str(tmp_path / name))
    assert change.after == b"x\ny\nafter y\nz\nlast"


LINES = st.lists(st.sampled_from(["a", "b", "  c", "\td", "", "é", "x y"]), min_size=1, max_size=12)


@given(lines=LINES, put=LINES, data=st.data(), line_end=st.sampled_from(["\n", "\r\n"]), ended=st.booleans())
def test_a_generated_patch_gives_the_expected_text(
    lines: list[str], put: list[str], data: st.DataObject, line_end: str, ended: bool
) -> None:
    lines = [f"{line} {number}" if line.strip() else line for number, line in enumerate(lines)] + ["the last"]
    start = data.draw(st.integers(0, len(lines) - 1))
    end = data.draw(st.integers(start + 1, len(lines)))
    before = lines[max(0, start - 2) : start]
    hunk_lines = [f" {line}" for line in before] + [f"-{line}" for line in lines[start:end]]
    hunk = Hunk(anchors=(), lines=(*hunk_lines, *(f"+{line}" for line in put)))
    text = line_end.join(lines) + (line_end if ended else "")
    expected = [*lines[:start], *put, *lines[end:]]
    wanted = line_end.join(expected) + (line_end if ended else "")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f"
        path.write_bytes(text.encode())
        try:
            changes = plan_patch((Update(path="f", move_to=None, hunks=(hunk,)),), lambda _: str(path))
        except ToolError:
            assert not any(line.strip() for line in [*before, *lines[start:end]])  # blank lines could be anywhere
            return
        apply(changes)
        assert path.read_bytes() == wanted.encode()
        assert list(Path(folder).iterdir()) == [path]


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "secret", "old_string": "zz", "new_string": "y"},
        {"mode": "patch", "patch": "*** Begin Patch\n*** Add File: secret\n+y\n*** End Patch"},
    ],
)
async def test_blocked_file_is_not_changed(bench: Workbench, arguments: dict[str, str]) -> None:
    assert "it is a secret" in await bench.problem("patch", **arguments)
    assert bench.tree() == {}
