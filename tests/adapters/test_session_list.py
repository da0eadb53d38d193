"""Filters, pages and cursors of the list of sessions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.adapters.openai_api.sessions import session_list
from hermes.adapters.openai_api.sessions.session_list import SessionFilter, read_cursor, read_page
from hermes.domain.errors import BadInputError
from hermes.domain.ids import SessionId
from hermes.domain.session.state import Phase, Preferences
from tests.support.fakes import FakeHub, FakeSessions, a_session


def stored(number: int) -> FakeSessions:
    """Sessions s0 to sN, the last one active last."""
    sessions = FakeSessions(FakeHub())
    for n in range(number):
        session = a_session(f"s{n}", platform="slack" if n % 2 else "api", owner=f"user{n}")
        preferences = Preferences(title=f"Chat {n}")
        sessions.sessions[SessionId(f"s{n}")] = replace(session, active_at=float(n), preferences=preferences)
    return sessions


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (SessionFilter(), ["s3", "s2", "s1", "s0"]),
        (SessionFilter(platform="slack"), ["s3", "s1"]),
        (SessionFilter(phase=Phase.ENDED), []),
        (SessionFilter(title="CHAT 2"), ["s2"]),
        (SessionFilter(person="user1"), ["s1"]),
        (SessionFilter(since=1, until=3), ["s2", "s1"]),
    ],
)
async def test_filter_selects_sessions(wanted: SessionFilter, ids: list[str]) -> None:
    sessions = stored(4)
    page = await read_page(sessions, wanted, after=None, limit=10)
    assert [each.id for each in page.sessions] == ids
    assert page.after is None
    assert await session_list.count(sessions, wanted) == len(ids)


@pytest.mark.parametrize("wanted", [SessionFilter(), SessionFilter(title="chat")])
async def test_pages_continue_at_the_cursor(wanted: SessionFilter) -> None:
    sessions, after, ids = stored(5), None, []
    for _ in range(3):
        page = await read_page(sessions, wanted, after=after, limit=2)
        ids += [each.id for each in page.sessions]
        after = page.after
    assert ids == ["s4", "s3", "s2", "s1", "s0"]
    assert after is None


def test_cursor_is_read_back() -> None:
    place = (1_800_000_000.123456, SessionId("20270115_080000_00000000"))
    assert read_cursor(session_list.cursor_of(place)) == place


@pytest.mark.parametrize("text", ["", "x", "W10", "WzEsMl0", "é", "WyItMSIsICJhIl0", "bnVsbA"])
def test_other_text_is_no_cursor(text: str) -> None:
    with pytest.raises(BadInputError):
        read_cursor(text)
