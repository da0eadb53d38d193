from __future__ import annotations

import pytest

from hermes.services.titles import MAX_TITLE, cleaned


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("A trip to Rome", "A trip to Rome"),
        ('\n"Title: A trip to Rome."\nmore', "A trip to Rome"),
        ("**A trip**", "A trip"),
        ("„Reise“ nach Rom", "„Reise“ nach Rom"),
        ("A \x1b[31mtrip\x07 to \u202eRome\u200b", "A [31mtrip to Rome"),
        ("\x1b\n\u202e", ""),
        ("\n \n", ""),
        ("", ""),
    ],
)
def test_a_title_is_one_line_without_decoration(answer: str, title: str) -> None:
    assert cleaned(answer) == title


def test_a_long_title_is_cut() -> None:
    assert len(cleaned("word " * 100)) <= MAX_TITLE
