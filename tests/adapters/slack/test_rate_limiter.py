"""How often Slack is spoken to, by a clock that the test turns."""

from __future__ import annotations

from hermes.adapters.slack.rate_limiter import Allowance, SlackLimits, SlackRateLimiter


def test_a_channel_waits_for_a_second_after_the_answer_and_others_do_not() -> None:
    pace = SlackRateLimiter(SlackLimits(), 0.0)
    pace.answered("T1.C1", 100.0)
    assert pace.wait_s("T1.C1", 100.25) == 0.75
    assert pace.wait_s("T1.C2", 100.25) == 0.0
    assert pace.wait_s("T1.C1", 101.5) == 0.0


def test_after_a_start_nothing_comes_too_soon() -> None:
    pace = SlackRateLimiter(SlackLimits(), 100.0)
    assert (pace.wait_s("T1.C1", 100.25), pace.wait_s("T1.C1", 101.0)) == (0.75, 0.0)


def test_after_a_start_replies_do_not_grow_for_a_while() -> None:
    pace = SlackRateLimiter(SlackLimits(change_every_s=1.0, changes_at_once=10), 100.0)
    assert not pace.changes.has_room("T1", 104.0)
    assert pace.changes.has_room("T1", 105.0)
    assert (
        SlackRateLimiter(SlackLimits(change_every_s=1.0, changes_at_once=10), 100.0).changes.take("T1", 100.0) == 1.0
    )


def test_workspace_limit_allows_a_burst_and_then_a_steady_rate() -> None:
    messages = SlackRateLimiter(SlackLimits(every_s=0.5, at_once=3), 0.0).messages
    assert [messages.take("T1", 100.0) for _ in range(5)] == [0.0, 0.0, 0.0, 0.5, 1.0]
    assert messages.take("T2", 100.0) == 0.0
    assert [messages.take("T1", 110.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]


def test_after_a_start_new_messages_go_one_after_the_other_at_first() -> None:
    messages = SlackRateLimiter(SlackLimits(every_s=0.5, at_once=3), 100.0).messages
    assert [messages.take("T1", 100.0) for _ in range(2)] == [0.5, 1.0]


def test_what_slack_wants_left_alone_is_left_alone_until_then() -> None:
    pace = SlackRateLimiter(SlackLimits(), 0.0)
    pace.hold("T1.C1", 130.0)
    assert (pace.held_s("T1.C1", 100.0), pace.held_s("T1.C2", 100.0), pace.held_s("T1.C1", 131.0)) == (30.0, 0.0, 0.0)


def test_an_allowance_is_never_exceeded_in_any_minute() -> None:
    allowance = Allowance(every_s=1.2, at_once=20)
    now, moments = 0.0, []
    for _ in range(300):
        now += allowance.take("T1", now)
        moments.append(now)
    assert moments[19] == 0.0
    assert all(sum(at <= each < at + 60 for each in moments) <= 71 for at in moments)


def test_half_of_an_allowance_is_kept_for_what_has_to_be() -> None:
    allowance = Allowance(every_s=2.0, at_once=4)
    taken = 0
    while allowance.has_room("T1", 0.0):
        allowance.take("T1", 0.0)
        taken += 1
    assert taken == 3
    assert allowance.take("T1", 0.0) == 0.0
    assert allowance.take("T1", 0.0) > 0.0
    assert allowance.has_room("T2", 0.0)
    assert allowance.has_room("T1", 100.0)


def test_quiet_channels_are_forgotten() -> None:
    pace = SlackRateLimiter(SlackLimits(), 0.0)
    for number in range(10_000):
        pace.answered(f"T1.C{number}", float(number))
    assert len(pace._free) <= 4096
