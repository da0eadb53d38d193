from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hermes.tools.files.fuzzy import STRATEGIES, replace
from hermes.tools.tool import ToolError

CODE = """\
def one():
    first(1)
    second( 2 )


def two():
    if ready:
        first(1)
        print("it is “here”")
    return
"""


def changed(old: str, new: str, text: str = CODE) -> tuple[str, str]:
    done = replace(text, old, new, every=False)
    return done.text, done.strategy


def test_an_exact_text_is_replaced_wherever_it_is_in_its_line() -> None:
    assert changed("cond( 2", "cond(3") == (CODE.replace("cond( 2", "cond(3"), "exact")


@pytest.mark.parametrize(
    ("old", "new", "put", "strategy"),
    [
        ("def one():  \n    first(1)\n", "X\n", ("def one():\n    first(1)\n", "X\n"), "trailing space ignored"),
        (
            "if ready:\n    first(1)\n",
            "if ready:\n    go()\n",
            ("    if ready:\n        first(1)\n", "    if ready:\n        go()\n"),
            "indentation ignored",
        ),
        (
            "def one():\nfirst(1)\n",
            "def one():\n    go()\n",
            ("def one():\n    first(1)\n", "def one():\n    go()\n"),
            "space at line ends ignored",
        ),
        ("second(  2   )", "third()", ("second( 2 )", "third()"), "runs of space ignored"),
        (
            'print("it is "here"")',
            "pass",
            ('print("it is “here”")', "pass"),
            "typographic characters ignored",
        ),
        (
            r"def two():\n    if ready:",
            r"def two():\n    if not ready:",
            ("def two():\n    if ready:", "def two():\n    if not ready:"),
            "escapes undone",
        ),
    ],
)
def test_small_mistakes_are_forgiven(old: str, new: str, put: tuple[str, str], strategy: str) -> None:
    assert changed(old, new) == (CODE.replace(*put), strategy)


def test_blank_lines_around_do_not_count() -> None:
    text, _ = changed("\n\n\n\n  return \n\n\n", "\n  leave\n")
    assert text == CODE.replace("    return", "    leave")


def test_new_lines_take_the_indentation_of_their_place() -> None:
    text, _ = changed("if ready:\n    first(1)", "if ready:\n    while True:\n        first(2)\n\n    end()")
    assert "    if ready:\n        while True:\n            first(2)\n\n        end()\n        print" in text


def test_an_ambiguous_text_changes_nothing_and_says_where_it_is() -> None:
    with pytest.raises(ToolError, match="2 times, at lines 2, 8"):
        changed("first(1)", "x")
    with pytest.raises(ToolError, match="2 times"):
        changed("aa", "b", "aaa")  # overlapping: it could be either


def test_every_place_is_replaced_on_request() -> None:
    done = replace(CODE, "first(1)", "x", every=True)
    assert (done.text, done.count) == (CODE.replace("first(1)", "x"), 2)
    assert replace("aaa", "aa", "b", every=True).text == "ba"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("", "x", "old_string is empty"),
        ("x", "x", "are equal"),
        ("secnd( 2 )", "x", "line 3: second"),
        ("zzzzzzz", "def one():", "already in the file"),
        ("zzzzzzz", "x", "No line is similar"),
        ("\n\n\n\n\n", "x", "not found"),
    ],
)
def test_what_cannot_be_replaced_is_explained(old: str, new: str, said: str) -> None:
    with pytest.raises(ToolError) as told:
        changed(old, new)
    assert said in str(told.value)


WORDS = st.text('ab (){}\t“"\\n', min_size=1, max_size=12)
LINES = st.lists(WORDS, min_size=1, max_size=6).map("\n".join)


@given(before=LINES, old=LINES, after=LINES, new=LINES)
def test_an_exact_edit_gives_exactly_the_expected_text(before: str, old: str, after: str, new: str) -> None:
    text = before + old + after
    assume(old != new)
    places = sum(text.startswith(old, at) for at in range(len(text)))
    if places == 1:
        assert replace(text, old, new, every=False).text == before + new + after
    else:
        with pytest.raises(ToolError, match=f"{places} times"):
            replace(text, old, new, every=False)


@given(text=LINES, old=LINES, new=LINES, every=st.booleans())
def test_nothing_outside_of_a_match_is_ever_touched(text: str, old: str, new: str, every: bool) -> None:
    for strategy in STRATEGIES.values():
        edits = strategy(text, old, new)
        for edit in edits:
            assert 0 <= edit.start < edit.end <= len(text)
            matched, sought = text[edit.start : edit.end], old
            for mark in '“"\\nt\t ':
                matched, sought = matched.replace(mark, ""), sought.replace(mark, "")
            assert matched.replace("\n", "") == sought.replace(
                "\n", ""
            )  # but for what does not count, it is the same
    try:
        done = replace(text, old, new, every=every)
    except ToolError:
        return
    # What is before the first place and behind the last one is as it was.
    edits = STRATEGIES[done.strategy](text, old, new)
    assert done.text.startswith(text[: edits[0].start])
    tail = text[max(edit.end for edit in edits) :]
    assert done.text.endswith(tail)


INDENTED = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "bb", "c d", "e()"])), min_size=2, max_size=6)


@given(block=INDENTED, margin=st.sampled_from(["  ", "\t", "      "]), added=st.sampled_from(["x", "y z"]))
def test_a_block_found_at_another_margin_is_changed_at_that_margin(
    block: list[tuple[int, str]], margin: str, added: str
) -> None:
    flat = [(0, "start"), *block]
    old = "\n".join("    " * depth + text for depth, text in flat) + "\n"
    there = "".join(f"{margin}{line}\n" for line in old.splitlines())
    new = old + added + "\n"
    done = replace(f"top\n{there}bottom\n", old, new, every=False)
    assert done.text == f"top\n{there}{margin}{added}\nbottom\n"
