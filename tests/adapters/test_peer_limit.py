"""Which connections are admitted, and which give way."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from hermes.adapters.http.peer_limit import SILENCE_S, PeerLimit, default_limit


class FakeTransport:
    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.closed = False

    def get_extra_info(self, _: str) -> tuple[str, int]:
        return self.peer, 1

    def close(self) -> None:
        self.closed = True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Limit:
    """A limit with a clock that tests move, and the transports of its connections by name."""

    def __init__(self, **limits: Any) -> None:
        self.clock = Clock()
        self.limit = PeerLimit(**limits, clock=self.clock)
        self.transports: dict[str, FakeTransport] = {}

    def open(self, peer: str = "10.0.0.1") -> str | None:
        transport = FakeTransport(peer)
        name = self.limit.admit(transport)  # type: ignore[arg-type]
        if name is not None:
            self.transports[name] = transport
        return name

    def known(self, peer: str = "10.0.0.1", *, busy: bool = True) -> str:
        name = self.open(peer)
        assert name is not None
        assert self.limit.begin(name)
        assert self.limit.set_known(name)
        if not busy:
            self.limit.end(name)
        return name

    def is_closed(self, name: str) -> bool:
        return self.transports[name].closed


@pytest.mark.parametrize(
    ("peer", "limit"), [("127.0.0.1", 1500), ("::1", 1500), ("::ffff:127.0.0.1", 1500), ("10.0.0.1", 64), ("", 64)]
)
def test_loopback_has_more_places(peer: str, limit: int) -> None:
    assert default_limit(peer) == limit


def test_idle_connections_without_a_key_do_not_take_places_of_those_with_one() -> None:
    limit = Limit(in_all=100, per_peer=2)
    idle = [limit.open(), limit.open()]
    limit.clock.now = SILENCE_S
    first, second = limit.known(), limit.known()
    assert not limit.is_closed(first)
    assert not limit.is_closed(second)
    assert [limit.is_closed(str(name)) for name in idle] == [True, False]


def test_new_connections_get_time_for_their_request() -> None:
    limit = Limit(in_all=100, per_peer=2)
    first, second, third = limit.open(), limit.open(), limit.open()
    assert third is not None  # it waits
    assert not limit.limit.begin(third)
    assert first is not None
    assert second is not None
    assert limit.limit.begin(first)
    assert limit.limit.begin(second)
    assert limit.limit.set_known(first)
    assert limit.limit.begin(third)  # there is a place now


def test_connection_that_is_idle_for_the_longest_time_is_closed() -> None:
    limit = Limit(in_all=100, per_peer=3)
    names = [limit.known(busy=False) for _ in range(3)]
    limit.clock.now = 1
    limit.limit.begin(names[0])
    limit.limit.end(names[0])
    limit.known()
    assert [limit.is_closed(name) for name in names] == [False, True, False]


def test_busy_connections_are_never_closed() -> None:
    limit = Limit(in_all=100, per_peer=2)
    names = [limit.known() for _ in range(2)]
    third = limit.open()
    assert third is not None
    assert limit.limit.begin(third)
    assert not limit.limit.set_known(third)
    assert not any(map(limit.is_closed, names))


def test_followers_leave_places_for_other_requests() -> None:
    limit = Limit(in_all=100, per_peer=2)
    for _ in range(2):
        assert limit.limit.set_following(limit.known())
    limit.known()
    third = limit.known()
    assert not limit.limit.set_following(third)


def test_follower_becomes_an_ordinary_connection_at_its_end() -> None:
    limit = Limit(in_all=100, per_peer=1)
    follower = limit.known()
    assert limit.limit.set_following(follower)
    limit.limit.end(follower)
    limit.known()
    assert limit.is_closed(follower)


def test_limit_in_all_closes_idle_connections_of_others() -> None:
    limit = Limit(in_all=4, per_peer=5)
    idle = limit.known("10.0.0.1", busy=False)
    limit.known("10.0.0.2")
    limit.known("10.0.0.3")
    assert limit.open("10.0.0.4") is not None
    assert not limit.is_closed(idle), "a connection without a request does not close one of a key holder"
    limit = Limit(in_all=4, per_peer=5)
    idle = limit.known("10.0.0.1", busy=False)
    for each in range(2, 5):
        limit.known(f"10.0.0.{each}")
    assert limit.is_closed(idle)


def test_closed_connections_leave_no_trace() -> None:
    limit = Limit(in_all=2, per_peer=1)
    for _ in range(5):
        limit.limit.release(limit.known())
    limit.limit.release("unknown")
    limit.known()


def test_longest_idle_connection_gives_way_in_any_order_of_requests() -> None:
    limit, random = Limit(in_all=12, per_peer=8), Random(7)
    open_ones: dict[str, float] = {}  # idle connections with a key, and since when
    busy: list[str] = []
    evicted = 0
    for _ in range(2000):
        limit.clock.now += 0.01
        wish = random.choice(["open", "begin", "end", "leave"])
        if wish == "open" and len(busy) < 8:
            longest = min(open_ones, key=open_ones.__getitem__) if len(open_ones) + len(busy) == 8 else None
            busy.append(limit.known())
            if longest is not None:
                assert limit.is_closed(longest)
                del open_ones[longest]
                evicted += 1
        elif wish == "begin" and open_ones:
            busy.append(name := random.choice(list(open_ones)))
            assert limit.limit.begin(name)
            del open_ones[name]
        elif wish == "end" and busy:
            name = busy.pop(random.randrange(len(busy)))
            limit.limit.end(name)
            open_ones[name] = limit.clock.now
        elif wish == "leave" and open_ones and random.random() < 0.2:
            limit.limit.release(name := random.choice(list(open_ones)))
            del open_ones[name]
    assert evicted > 100
    assert limit.limit.connections == len(open_ones) + len(busy)
