"""Which events a reader of all sessions gets, and from where on."""

from __future__ import annotations

import pytest

from hermes.adapters.openai_api.events.event_api import MAX_REPLAY, EventFilter, start_position


@pytest.mark.parametrize(
    ("given", "end", "expected"),
    [
        (None, 7, (7, "")),
        (7, 7, (7, "")),
        (3, 7, (3, "")),
        (0, MAX_REPLAY, (0, "")),
        (0, MAX_REPLAY + 1, (MAX_REPLAY + 1, "too_old")),
        (8, 7, (7, "unknown_position")),
    ],
)
def test_reader_continues_after_its_last_event_or_is_told_of_the_gap(
    given: int | None, end: int, expected: tuple[int, str]
) -> None:
    assert start_position(given, end) == expected


@pytest.mark.parametrize(
    ("types", "wanted"),
    [
        ((), ["run.completed", "message.delta", "runs"]),
        (("run",), ["run.completed"]),
        (("run.completed", "message"), ["run.completed", "message.delta"]),
        (("run.comp",), []),
    ],
)
def test_types_select_by_name_or_first_part(types: tuple[str, ...], wanted: list[str]) -> None:
    every = ["run.completed", "message.delta", "runs"]
    assert [name for name in every if EventFilter(types=types).wants(name)] == wanted
