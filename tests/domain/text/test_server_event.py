"""Parser of server-sent events."""

from __future__ import annotations

from hermes.domain.text.server_event import EventParser, RawEvent


def parsed(text: str, last_id: str = "") -> list[RawEvent]:
    parser = EventParser(last_id=last_id)
    found = (parser.feed(line) for line in text.split("\n"))
    return [event for event in found if event is not None]


def test_events_have_names_data_and_the_last_id() -> None:
    text = "id: 7\nevent: run.started\ndata: {}\n\ndata: a\ndata: b\n\n"
    assert parsed(text) == [
        RawEvent(id="7", name="run.started", data="{}"),
        RawEvent(id="7", name="message", data="a\nb"),
    ]


def test_comments_and_events_without_data_are_skipped() -> None:
    assert parsed(": ping\n\nid: 9\n: ping\n\nevent: x\n\ndata:y\n\n") == [RawEvent(id="9", name="message", data="y")]


def test_id_of_an_earlier_stream_is_kept() -> None:
    assert parsed("data: x\n\n", last_id="5") == [RawEvent(id="5", name="message", data="x")]
