"""Search as a person types it: words, and filters such as `since:7d` among them. Pure."""

from __future__ import annotations

from typing import Final

from hermes.domain.errors import BadInputError
from hermes.domain.read.log_line import parse_since
from hermes.domain.values import dataclass
from hermes.ports.search import SearchFilter

FILTERS: Final = ("since", "until", "platform", "person", "role")
_ROLES: Final = ("user", "assistant")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchWish:
    query: str
    only: SearchFilter


def parse_wish(text: str, now: float) -> SearchWish:
    """Split words and filters. Raises BadInputError for a filter that means nothing."""
    words: list[str] = []
    given: dict[str, str] = {}
    for word in text.split():
        name, colon, value = word.partition(":")
        if colon and value and name in FILTERS:
            given[name] = value
        else:
            words.append(word)
    role = given.get("role")
    if role is not None and role not in _ROLES:
        raise BadInputError(f"role is user or assistant, not {role[:40]!r}", code="invalid_filter")
    only = SearchFilter(
        role=role,
        since=_time("since", given, now),
        until=_time("until", given, now),
        platform=given.get("platform", ""),
        person=given.get("person", ""),
    )
    return SearchWish(query=" ".join(words), only=only)


def _time(name: str, given: dict[str, str], now: float) -> float | None:
    if name not in given:
        return None
    try:
        return parse_since(given[name], now)
    except ValueError as error:
        raise BadInputError(f"{name}: {error}", code="invalid_filter") from None
