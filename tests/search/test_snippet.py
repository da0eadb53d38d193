from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.search.snippet import BEFORE, CLOSE, OPEN, WIDTH, snippet


def test_what_was_found_stands_between_marks() -> None:
    assert snippet("The red Fox", ["fox"]) == "The red >>>Fox<<<"


def test_accents_and_case_do_not_matter_and_are_kept() -> None:
    assert snippet("Ein CAFÉ in der Straße", ["cafe", "strasse"]) == "Ein >>>CAFÉ<<< in der >>>Straße<<<"


def test_a_word_is_marked_at_its_beginning_unless_only_its_inside_was_meant() -> None:
    assert snippet("undo do", ["do"]) == "undo >>>do<<<"
    assert snippet("reconnected", ["connect"]) == "re>>>connect<<<ed"
    assert snippet("東京駅です", ["駅"]) == "東京>>>駅<<<です"


def test_the_part_with_most_of_the_words_is_shown() -> None:
    text = "fox " + "x " * 300 + "the quick fox is red " + "y " * 300
    shown = snippet(text, ["fox", "red"])
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert ">>>fox<<< is >>>red<<<" in shown


def test_a_text_without_a_visible_match_is_shown_from_its_beginning() -> None:
    assert snippet("abc", ["x"]) == "abc"
    assert snippet("abc", []) == "abc"


@given(st.text(max_size=600), st.lists(st.text(alphabet="abéß東ﬁ", min_size=1, max_size=3), max_size=3))
def test_marks_are_balanced_and_the_width_is_kept(text: str, tokens: list[str]) -> None:
    shown = snippet(text.replace("<", "").replace(">", ""), tokens)
    assert shown.count(OPEN) == shown.count(CLOSE)
    assert len(shown.replace(OPEN, "").replace(CLOSE, "")) <= WIDTH + BEFORE
