"""Never more than Telegram takes, whatever is asked for, and no slower than needed."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from hermes.adapters.telegram.rate_limiter import TelegramLimits, TelegramRateLimiter

WISHES = st.lists(st.tuples(st.floats(0, 5), st.sampled_from(["1", "2", "-1", "-2"])), max_size=120)


def spoken(wishes: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """When each message would go out, if each chat's were said one after the other and answered at once."""
    pace = TelegramRateLimiter(TelegramLimits(), -60.0)
    now = 0.0
    said = []
    for pause_s, chat in wishes:
        now += pause_s
        now += pace.wait_s(chat, now)
        now += pace.turn_s(now)
        pace.take_turn(now)
        said.append((now, chat))
        pace.answered(chat, now)
    return said


@given(WISHES)
def test_a_chat_is_told_one_thing_a_second_and_a_group_twenty_a_minute(wishes: list[tuple[float, str]]) -> None:
    said = spoken(wishes)
    for chat in {chat for _, chat in said}:
        times = [at for at, where in said if where == chat]
        assert all(later - earlier >= 0.999 for earlier, later in itertools.pairwise(times))
        if chat.startswith("-"):
            assert all(sum(at - 60 < each <= at for each in times) <= 20 for at in times)


def test_all_together_are_told_thirty_things_a_second_at_most() -> None:
    times = [at for at, _ in spoken([(0.0, str(number)) for number in range(200)])]
    assert all(sum(at - 1 < each <= at for each in times) <= 30 for at in times)
    assert times[0] == 0
    assert times[-1] < 200 / 25


def test_group_allows_a_short_burst() -> None:
    times = [at for at, _ in spoken([(0.0, "-1")] * 60)]
    assert times[5] <= 5
    assert times[8] > 15
    assert 19 <= max(sum(at - 60 < each <= at for each in times) for at in times) <= 20


def test_a_chat_that_waits_keeps_no_other_waiting() -> None:
    pace = TelegramRateLimiter(TelegramLimits(), -60.0)
    pace.answered("1", 0.0)
    pace.hold("2", 99.0)
    assert pace.wait_s("1", 0.25) == 0.75
    assert pace.held_s("2", 9.0) == 90.0
    assert (pace.wait_s("3", 0.25), pace.held_s("3", 0.25)) == (0.0, 0.0)


def test_chats_that_need_not_wait_are_forgotten() -> None:
    pace = TelegramRateLimiter(TelegramLimits(), -60.0)
    for number in range(10_000):
        pace.answered(str(number), number / 10)
    assert len(pace._chats) <= 4096


def test_after_a_start_nothing_comes_too_soon_after_what_came_before_it() -> None:
    pace = TelegramRateLimiter(TelegramLimits(), 10.0)
    assert pace.wait_s("1", 10.25) == pace.wait_s("-1", 10.25) == 0.75
    pace.answered("-1", 11.0)
    assert pace.wait_s("-1", 11.0) == 3.0
