"""Fences around text of others."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from hermes.domain.text.fence import fenced, without_fences
from hermes.system.random_id import new_marker

MARKER = "0a1b"
OPEN, CLOSE = f"<untrusted-{MARKER}>", f"</untrusted-{MARKER}>"
PARTS = st.lists(
    st.sampled_from([OPEN, CLOSE, CLOSE.upper(), MARKER, "< / UNTRUSTED", "0a", "1b", "\u202e", "\x00", "\r\n", "x"])
)


@given(PARTS)
def test_content_cannot_end_its_fence(parts: list[str]) -> None:
    text = fenced("".join(parts), MARKER)
    inside = text.removeprefix(OPEN).removesuffix(CLOSE)
    assert text == f"{OPEN}{inside}{CLOSE}"
    assert MARKER not in inside.lower()
    assert not re.search(r"(?<!\\)<\s*/?\s*untrusted", inside, re.IGNORECASE)


@given(st.text())
def test_hidden_characters_are_shown_as_escapes(text: str) -> None:
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2066-\u2069\ufeff]", fenced(text, MARKER))


def test_length_is_bounded_and_the_rest_is_counted() -> None:
    assert fenced("x" * 15, MARKER, max_chars=10) == f"{OPEN}{'x' * 10}… (5 more characters){CLOSE}"


def test_emoji_and_other_scripts_stay() -> None:
    text = "👩‍💻 می‌خواهم é"
    assert fenced(text, MARKER) == f"{OPEN}{text}{CLOSE}"
    assert without_fences(fenced(text, MARKER)) == text


def test_markers_differ() -> None:
    assert len({new_marker() for _ in range(100)}) == 100
