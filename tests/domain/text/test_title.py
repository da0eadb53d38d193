"""Titles of sessions, and every way that one can be set."""

from __future__ import annotations

import pytest

from hermes.domain.session.protocol import Begin, SetPreference
from hermes.domain.text.title import MAX_TITLE, clean_title
from tests.actors.talk import API, SessionTalk


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("Trip to Rome", "Trip to Rome"),
        ("  Trip\n\tto\r\n Rome\x85", "Trip to Rome"),
        ("\x1b[31mRed\x07\x00", "[31mRed"),
        ("gepj.\u202egnp\u202c", "gepj.gnp"),
        ("\u2028a\ufeffb\ud800c\u200b", "abc"),
        ("\x07\x1b", ""),
        ("👩\u200d🔬 नमस्ते", "👩\u200d🔬 नमस्ते"),
        ("x" * MAX_TITLE, "x" * MAX_TITLE),
        ("x" * (MAX_TITLE + 1), "x" * (MAX_TITLE - 1) + "…"),
    ],
)
def test_title_is_one_line_of_visible_characters(given: str, kept: str) -> None:
    assert clean_title(given) == kept
    assert clean_title(kept) == kept


def test_title_is_cleaned_however_it_is_set() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.answer("A")
    talk.do(SetPreference(name="title", value="Trip\x1b to\n Rome\u202e", reason="asked"))
    assert talk.session.preferences.title == "Trip to Rome"
    talk.do(Begin(source=API, title="Rome\x07"))
    assert talk.session.preferences.title == "Rome"
    assert talk.branch(title="Copy\x00\tof it").session.preferences.title == "Copy of it"
