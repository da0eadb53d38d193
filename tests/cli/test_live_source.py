"""Streamed text in the live view of a session."""

from __future__ import annotations

from hermes.cli.inspection.live_source import StreamedText


def test_streamed_text_is_cut_at_line_ends_and_after_a_line_of_words() -> None:
    text = StreamedText()
    assert text.add("one ") == []
    assert text.add("two\nthr") == ["one two"]
    long = text.add("ee " + "word " * 20)
    assert len(long) == 1
    assert long[0].startswith("three word")
    assert len(long[0]) <= 72
    whole = " ".join([*long, *text.rest()])
    assert whole.split() == ["three", *["word"] * 20]
    assert text.rest() == []


def test_text_that_stalls_is_shown() -> None:
    text = StreamedText()
    text.add("half a sent")
    shown = [text.pause() for _ in range(8)]
    assert [lines for lines in shown if lines] == [["half a sent"]]
