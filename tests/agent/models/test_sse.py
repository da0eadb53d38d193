from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.models.protocols.sse import EventDecoder
from hermes.domain.errors import ModelError

lines = st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"").replace(b"\r", b""))
ends = st.sampled_from([b"\n", b"\r\n", b"\r"])


def decode(stream: bytes, cuts: list[int]) -> list[bytes]:
    decoder = EventDecoder()
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    pieces = [stream[start:end] for start, end in pairwise(edges)]
    return [event for piece in pieces for event in decoder.feed(piece)]


@given(st.lists(st.lists(lines, min_size=1, max_size=3)), ends, st.lists(st.integers(0, 1000)))
def test_any_chunking_gives_the_same_events(events: list[list[bytes]], end: bytes, cuts: list[int]) -> None:
    stream = b"".join(b"".join(b"data: " + line + end for line in event) + end for event in events)
    stream += b": the end" + end + end  # a lone carriage return is held back until more is known
    assert decode(stream, cuts) == [b"\n".join(event) for event in events]


def test_comments_names_and_ids_are_skipped() -> None:
    stream = b": ping\n\nevent: x\nid: 1\nretry: 5\ndata:one\nodd\n\ndata\n\n"
    assert decode(stream, []) == [b"one"]


def test_half_an_event_is_no_event() -> None:
    assert decode(b"data: whole\n\ndata: half\n", []) == [b"whole"]


@pytest.mark.parametrize("piece", [b"x" * 10, b"data: xxxx\n", b"data:\ndata:\n"])
def test_an_event_without_end_is_refused(piece: bytes) -> None:
    decoder = EventDecoder(limit_bytes=100)
    for _ in range(9):
        assert not list(decoder.feed(piece))
    with pytest.raises(ModelError, match="too large"):
        list(decoder.feed(piece * 30))


def test_many_small_events_in_one_chunk_are_not_one_big_event() -> None:
    assert len(list(EventDecoder(limit_bytes=100).feed(b"data: x\n\n" * 1000))) == 1000
