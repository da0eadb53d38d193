"""Limit of wrong logins of the dashboard."""

from __future__ import annotations

import pytest

from hermes.web.login_limit import MAX_PEERS, MAX_WRONG, WINDOW_S, LoginLimit


class SteadyTime:
    def __init__(self) -> None:
        self.now = 5.0

    def __call__(self) -> float:
        return self.now


def test_address_waits_until_its_oldest_wrong_login_is_old() -> None:
    clock = SteadyTime()
    limit = LoginLimit(clock)
    for _ in range(MAX_WRONG):
        assert limit.wait_s("127.0.0.1") == 0
        limit.count("127.0.0.1")
        clock.now += 1
    assert limit.wait_s("127.0.0.1") == WINDOW_S - MAX_WRONG
    assert limit.wait_s("127.0.0.2") == 0
    clock.now += WINDOW_S - MAX_WRONG
    assert limit.wait_s("127.0.0.1") == 0
    limit.count("127.0.0.1")
    assert limit.wait_s("127.0.0.1") == 1


@pytest.mark.parametrize(
    ("one", "other", "is_one"),
    [
        ("2001:db8::1", "2001:db8::2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("", "", True),
    ],
)
def test_addresses_of_one_peer_count_together(one: str, other: str, is_one: bool) -> None:
    limit = LoginLimit(SteadyTime())
    for _ in range(MAX_WRONG):
        limit.count(one)
    assert bool(limit.wait_s(other)) is is_one


def test_only_the_latest_addresses_are_kept() -> None:
    limit = LoginLimit(SteadyTime())
    for _ in range(MAX_WRONG):
        limit.count("first")
    for number in range(MAX_PEERS - 1):
        limit.count(str(number))
    assert limit.wait_s("first")
    limit.count("one more")
    assert not limit.wait_s("first")
