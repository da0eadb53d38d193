from __future__ import annotations

import pytest

from hermes.domain.errors import BadInputError
from hermes.ports.search import SearchFilter
from hermes.services.recall.search_wish import parse_wish

DAY_S = 86_400.0


def test_filters_are_taken_out_of_the_words() -> None:
    wish = parse_wish("red platform:telegram fox person:telegram:7 since:2d until:1d role:user", 10 * DAY_S)
    assert wish.query == "red fox"
    assert wish.only == SearchFilter(
        platform="telegram", person="telegram:7", since=8 * DAY_S, until=9 * DAY_S, role="user"
    )


@pytest.mark.parametrize("text", ["http://x.example/since", "note: fox", "since: fox", "12:30"])
def test_other_words_with_a_colon_are_words(text: str) -> None:
    assert parse_wish(text, 0.0).query == text
    assert parse_wish(text, 0.0).only == SearchFilter()


@pytest.mark.parametrize("text", ["since:soon", "until:x fox", "role:owner"])
def test_filters_without_a_meaning_are_refused(text: str) -> None:
    with pytest.raises(BadInputError) as refused:
        parse_wish(text, 0.0)
    assert refused.value.code == "invalid_filter"
