"""However a text is cut: nothing is lost, everything fits, and code stays code."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from hermes.adapters.chat.parts import NOTHING
from hermes.adapters.chat.utf16 import prefix, sound, units
from hermes.adapters.telegram.parts import LIMIT, split

WORDS = st.text(alphabet="ab😀\ud83d é\n", max_size=60)
LINES = st.one_of(
    WORDS,
    st.sampled_from(
        [
            *("```", "```python", "~~~", "````", "  ```", "   ~~~ text", "```inline```", "x ``` y", "`a`", "", "\n"),
            *("      ```", "        ~~~ text", "\t```", "- ```", "  1. ```python", "x   ``` y", "x - ``` y", "- a"),
        ]
    ),
    st.integers(0, 300).map(lambda size: "x" * size),
)
TEXTS = st.lists(LINES, max_size=40).map("\n".join)
SMALL = st.integers(90, 230)


INDENT = r"(?:[ \t]|(?:[-*+]|\d{1,9}[.)])[ \t])*"


def fence_lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if re.fullmatch(INDENT + r"(`{3,}[^`]*|~{3,}.*)", line)]


def said(*texts: str) -> str:
    """Everything but white space, and lines that open or close code."""
    lines = [line for text in texts for line in text.split("\n") if not fence_lines(line)]
    return "".join("".join(lines).split())


def is_balanced(part: str) -> bool:
    marks = ""
    for line in part.split("\n"):
        found = re.fullmatch((r"[ \t]*" if marks else INDENT) + r"(`{3,}|~{3,})(.*)", line)
        if found is None:
            continue
        if marks:
            marks = "" if found[1].startswith(marks) and not found[2].strip() else marks
        elif found[1][0] == "~" or "`" not in found[2]:
            marks = found[1]
    return not marks


@given(TEXTS, SMALL)
def test_every_part_fits_and_says_something(text: str, limit: int) -> None:
    for part in split(text, limit):
        assert 0 < units(part) <= limit
        assert part.strip()
        assert sound(part) == part


@given(TEXTS, SMALL)
def test_nothing_but_white_space_is_lost(text: str, limit: int) -> None:
    if said(text):
        assert said(*split(text, limit)) == said(sound(text))


@given(TEXTS, SMALL)
def test_code_that_is_cut_is_closed_and_opened_again(text: str, limit: int) -> None:
    parts = split(text, limit)
    for part in parts[:-1]:
        assert is_balanced(part)
    assert is_balanced(parts[-1]) == is_balanced(sound(text))


@given(TEXTS, SMALL, st.integers(0, 2000))
def test_a_text_that_grows_keeps_its_parts_but_the_last(text: str, limit: int, size: int) -> None:
    whole, earlier = split(text, limit), split(text[:size], limit)
    assert earlier[:-1] == whole[: len(earlier) - 1]


@given(st.text(alphabet="a😀", max_size=50), st.integers(0, 60))
def test_a_prefix_is_the_longest_that_fits(text: str, room: int) -> None:
    found = prefix(text, room)
    assert text.startswith(found)
    assert units(found) <= room
    assert found == text or units(text[: len(found) + 1]) > room


def test_a_short_text_is_one_part_as_it_is() -> None:
    assert split("  a\n\n```\nb\n") == ("  a\n\n```\nb\n",)


def test_an_empty_text_is_something_all_the_same() -> None:
    assert split("") == split(" \n ") == (NOTHING,)


def test_a_text_is_cut_at_an_empty_line_if_it_can() -> None:
    first, second = "a b\n" * 800, "c d\n" * 500
    assert split(f"{first}\n{second}") == (first.rstrip("\n"), second)


def test_long_code_is_code_in_every_part() -> None:
    parts = split("look:\n\n```python\n" + "x = 1\n" * 2000 + "```\nthat was it")
    assert len(parts) >= 3
    assert all(part.startswith("```python\nx = 1\n") and part.endswith("\n```") for part in parts[1:-1])
    assert parts[0].startswith("look:\n\n```python")
    assert parts[-1].endswith("```\nthat was it")


@given(st.integers(0, 12), st.sampled_from(["```", "~~~~"]), st.integers(60, 400), st.integers(150, 400))
def test_long_code_in_a_nested_list_is_code_in_every_part(indent: int, marks: str, lines: int, limit: int) -> None:
    space = " " * indent
    text = f"- a\n{space}{marks}python\n" + f"{space}if x:\n{space}  y()\n" * lines + f"{space}{marks}\nthe end"
    first, *others = split(text, limit)
    assert first.endswith(f"\n{space}{marks}")  # closed where it stands
    for part in others[:-1]:
        opened, *code, closed = part.split("\n")
        assert (opened, closed) == (f"{marks}python", marks)
        assert set(code) <= {"if x:", "  y()"}
    assert is_balanced(others[-1])
    assert others[-1].endswith("the end")


def test_emoji_count_twice() -> None:
    parts = split("😀" * 4096)
    assert "".join(parts) == "😀" * 4096
    assert all(len(part) <= LIMIT // 2 for part in parts)
