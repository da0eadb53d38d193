"""What a client is sent of a turn's replies is what the model said, in order, and nothing twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.adapters.openai_api.turns.stream_cursor import STARTS_AGAIN, StreamCursor


def test_replies_are_set_off_by_a_blank_line() -> None:
    spoken = StreamCursor()
    assert spoken.hear("Let me ") == "Let me "
    assert spoken.hear("look.") == "look."
    spoken.next_reply()
    spoken.next_reply()
    assert spoken.hear("Found") == "\n\nFound"
    assert spoken.rest("Found it.") == " it."


def test_repeated_identical_text_continues_without_a_break() -> None:
    spoken = StreamCursor()
    spoken.hear("one two")
    spoken.again()
    assert [spoken.hear(piece) for piece in ("one", " two th", "ree")] == ["", " th", "ree"]
    assert spoken.rest("one two three") == ""


def test_repeated_different_text_is_sent_whole_after_a_note() -> None:
    spoken = StreamCursor()
    spoken.hear("one two")
    spoken.again()
    assert [spoken.hear(piece) for piece in ("one", " three", " four")] == ["", f"{STARTS_AGAIN}one three", " four"]
    assert spoken.rest("one three four five") == " five"


def test_a_shorter_reply_than_what_was_sent_is_sent_whole() -> None:
    spoken = StreamCursor()
    spoken.hear("one two")
    spoken.again()
    spoken.hear("one")
    assert spoken.rest("one") == f"{STARTS_AGAIN}one"


def test_shorter_repeated_text_is_noted_with_the_next_text() -> None:
    spoken = StreamCursor()
    spoken.hear("one two")
    spoken.again()
    spoken.hear("one")
    spoken.next_reply()
    assert spoken.hear("the answer") == f"{STARTS_AGAIN}one\n\nthe answer"
    assert spoken.rest("the answer") == ""


def test_what_was_missed_is_not_guessed() -> None:
    spoken = StreamCursor()
    spoken.hear("one")
    spoken.miss()
    assert spoken.hear("three") == ""
    assert spoken.rest("one two three") == " two three"


@given(st.lists(st.text("ab", max_size=3), max_size=6), st.lists(st.integers(0, 6), max_size=4))
def test_breaking_off_and_repeating_changes_nothing_that_is_sent(pieces: list[str], breaks: list[int]) -> None:
    spoken = StreamCursor()
    sent = ""
    for upto in breaks:
        for piece in pieces[:upto]:
            sent += spoken.hear(piece)
        spoken.again()
    for piece in pieces:
        sent += spoken.hear(piece)
    assert sent == "".join(pieces)
    assert spoken.rest(sent) == ""


@given(st.lists(st.lists(st.text("ab", max_size=3), max_size=4), min_size=1, max_size=4), st.booleans())
def test_a_stream_ends_with_the_last_attempt_whole(attempts: list[list[str]], lost: bool) -> None:
    spoken = StreamCursor()
    sent = ""
    for attempt in attempts:
        spoken.again()
        for piece in attempt:
            sent += spoken.hear(piece)
    if lost:
        spoken.miss()
    whole = "".join(attempts[-1])
    sent += spoken.rest(whole)
    assert sent.rpartition(STARTS_AGAIN)[2] == whole
