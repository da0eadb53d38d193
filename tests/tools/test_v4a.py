from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.tools.files.v4a import Add, Change, Delete, Hunk, Update, parse, paths
from hermes.tools.tool import ToolError

WHOLE = """\
*** Begin Patch
*** Update File: src/a.py
*** Move to: src/b.py
@@ class A:
@@     def f(self):
 stays

-goes
+comes
*** End of File
*** Add File: notes.txt
+one
+
+*** Begin Patch
*** Delete File: old file.txt
*** End Patch
"""


def test_every_part_of_the_format_is_understood() -> None:
    changes = parse(WHOLE)
    assert changes == (
        Update(
            path="src/a.py",
            move_to="src/b.py",
            hunks=(
                Hunk(
                    anchors=("class A:", "    def f(self):"),
                    lines=(" stays", " ", "-goes", "+comes"),
                    at_end=True,
                ),
            ),
        ),
        Add(path="notes.txt", lines=("one", "", "*** Begin Patch")),
        Delete(path="old file.txt"),
    )
    assert paths(changes) == ["src/a.py", "src/b.py", "notes.txt", "old file.txt"]


def test_every_target_of_a_file_that_moves_twice_is_named() -> None:
    moves = "*** Update File: a\n*** Move to: b\n*** Add File: a\n+x\n*** Update File: a\n*** Move to: c\n"
    assert paths(parse(f"*** Begin Patch\n{moves}*** End Patch")) == ["a", "b", "c"]


def test_what_models_put_around_a_patch_does_not_matter() -> None:
    assert parse(f"\n```diff\n{WHOLE}```\n\n") == parse(WHOLE)
    assert parse(WHOLE.replace("\n", "\r\n")) == parse(WHOLE)
    spaced = WHOLE.replace("*** Add", "\n*** Add").replace("*** Delete", "\n\n*** Delete")
    assert parse(spaced) == parse(WHOLE)


def test_the_numbers_of_a_unified_diff_are_no_anchor() -> None:
    [change] = parse("*** Begin Patch\n*** Update File: a\n@@ -1,2 +1,3 @@ def x\n-a\n+b\n@@\n-c\n*** End Patch")
    assert isinstance(change, Update)
    assert [hunk.anchors for hunk in change.hunks] == [(), ()]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must begin with"),
        ("*** Begin Patch", "truncated"),
        (WHOLE.replace("*** End Patch", ""), "truncated"),
        ("*** Begin Patch\n*** End Patch", "names no file"),
        ("*** Begin Patch\n*** Update File: \n*** End Patch", "path is missing"),
        ("*** Begin Patch\n*** Update File\n*** End Patch", "expected"),
        ("*** Begin Patch\n*** Update File: a\n*** End Patch", "no change for a"),
        ("*** Begin Patch\n*** Update File: a\n@@ x\n*** End Patch", "changes nothing"),
        ("*** Begin Patch\n*** Update File: a\n stays\n*** End Patch", "changes nothing"),
        ("*** Begin Patch\n*** Update File: a\n-x\n?y\n*** End Patch", "must begin with ' ', '-' or '+'"),
        ("*** Begin Patch\n*** Add File: a\nx\n*** End Patch", "must begin with '+'"),
        ("*** Begin Patch\nhello\n*** End Patch", "expected"),
    ],
)
def test_a_text_that_is_no_patch_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(ToolError) as told:
        parse(text)
    assert said in str(told.value)


NAME = st.text("abc/._ é", min_size=1, max_size=12).map(str.strip).filter(bool)
LINE = st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]), max_size=12)
ANCHOR = st.text("abc(): *", min_size=1, max_size=10).filter(str.strip)
HUNK = st.builds(
    lambda anchors, lines, last, at_end: Hunk(anchors=tuple(anchors), lines=(*lines, last), at_end=at_end),
    st.lists(ANCHOR, min_size=1, max_size=2),
    st.lists(st.builds(str.__add__, st.sampled_from(" -+"), LINE), max_size=5),
    st.builds(str.__add__, st.sampled_from("-+"), LINE),
    st.booleans(),
)
CHANGE = st.one_of(
    st.builds(lambda path, lines: Add(path=path, lines=tuple(lines)), NAME, st.lists(LINE, max_size=5)),
    st.builds(lambda path: Delete(path=path), NAME),
    st.builds(
        lambda path, move_to, hunks: Update(path=path, move_to=move_to, hunks=tuple(hunks)),
        NAME,
        st.none() | NAME,
        st.lists(HUNK, min_size=1, max_size=3),
    ),
)


def written(changes: tuple[Change, ...]) -> str:
    lines = ["*** Begin Patch"]
    for change in changes:
        match change:
            case Add():
                lines += [f"*** Add File: {change.path}", *(f"+{line}" for line in change.lines)]
            case Delete():
                lines.append(f"*** Delete File: {change.path}")
            case Update():
                lines.append(f"*** Update File: {change.path}")
                lines += [f"*** Move to: {change.move_to}"] if change.move_to else []
                for hunk in change.hunks:
                    lines += [f"@@ {anchor}" for anchor in hunk.anchors]
                    lines += [*hunk.lines, *(["*** End of File"] if hunk.at_end else [])]
    return "\n".join([*lines, "*** End Patch", ""])


@given(st.lists(CHANGE, min_size=1, max_size=4).map(tuple))
def test_what_is_written_is_what_is_read(changes: tuple[Change, ...]) -> None:
    assert parse(written(changes)) == changes


@given(st.lists(st.sampled_from([*WHOLE.splitlines(), "", "x", "@@", "\0", "***"]), max_size=12).map("\n".join))
def test_any_text_is_a_patch_or_a_plain_problem(text: str) -> None:
    for given_text in (text, f"*** Begin Patch\n{text}\n*** End Patch"):
        with suppress(ToolError):
            assert parse(given_text)
