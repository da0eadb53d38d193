"""Limits of open connections, in all and per address.

A connection is unauthenticated, authenticated, or a follower of a stream. Each of these is limited per address, apart
from the others: idle sockets without a key do not take the places of key holders, and followers do not take those of
short requests. Idle connections are closed first. A connection beyond the limits waits for its request head, and gets
a place or the answer 503.
"""

from __future__ import annotations

import asyncio
import ipaddress
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import Final, Protocol

from loguru import logger

LOOPBACK_CONNECTIONS: Final = 1500  # defaults per address
PEER_CONNECTIONS: Final = 64
RETRY_AFTER_S: Final = 5  # connections are held for long: a second later there is hardly more room
SILENCE_S: Final = 1.0  # a connection without a request so far counts as idle after this
_BODY = (
    b'{"error":{"message":"Too many connections. Try again later.","type":"server_error","param":null,"code":"%s"}}'
)
TOO_MANY: Final = "too_many_connections"
REFUSAL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nServer: hermes\r\nContent-Type: application/json\r\nRetry-After: %d\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%s"
) % (RETRY_AFTER_S, len(_BODY % TOO_MANY.encode()), _BODY % TOO_MANY.encode())


class ConnectionAdmission(Protocol):
    refusal: bytes  # sent to a connection that is not admitted; may be empty

    def admit(self, transport: asyncio.Transport) -> str | None:
        """Return a name for the connection; None closes it."""

    def release(self, name: str) -> None: ...
    def begin(self, name: str) -> bool:
        """Record the start of a request. Return False if no place is free."""

    def end(self, name: str) -> None: ...  # the request was answered
    def set_known(self, name: str) -> bool:
        """Record that a request had a valid key. Return False if no place is free."""

    def set_following(self, name: str) -> bool:
        """Record that the request follows a stream of events. Return False if no place is free."""


class Pool(Enum):
    OVERFLOW = auto()  # without a place so far
    STRANGER = auto()  # without a valid key so far
    KNOWN = auto()
    FOLLOWER = auto()


@dataclass(slots=True, kw_only=True)
class _Place:
    peer: str
    transport: asyncio.Transport
    pool: Pool
    since: float  # of the last change
    busy: bool = False
    used: bool = False  # had a request


def default_limit(peer: str) -> int:
    return LOOPBACK_CONNECTIONS if _is_loopback(peer) else PEER_CONNECTIONS


@lru_cache(maxsize=256)
def _is_loopback(peer: str) -> bool:
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


class PeerLimit:
    def __init__(self, *, in_all: int, per_peer: int = 0, clock: Callable[[], float] | None = None) -> None:
        """`per_peer`: 0 means the defaults. `clock`: monotonic seconds; the event loop's if none is given."""
        self.refusal = REFUSAL
        self._in_all = in_all
        self._overflow = in_all // 4
        self._per_peer = per_peer
        self._clock = clock or (lambda: asyncio.get_running_loop().time())
        self._places: dict[str, _Place] = {}
        self._counts: Counter[tuple[Pool, str]] = Counter()
        self._totals: Counter[Pool] = Counter()
        # Connections without a request, longest idle first: of an address and of all (None), used ones and new ones.
        self._idle: dict[tuple[Pool, str | None, bool], dict[str, None]] = {}
        self._numbers = itertools.count()
        self._quiet_until = 0.0

    @property
    def connections(self) -> int:
        return len(self._places)

    def admit(self, transport: asyncio.Transport) -> str | None:
        address = transport.get_extra_info("peername")
        peer = str(address[0]) if address else ""
        pool = Pool.STRANGER if self._make_room(peer, Pool.STRANGER, asked=False) else Pool.OVERFLOW
        if pool is Pool.OVERFLOW and self._totals[pool] >= self._overflow:
            self._complain(peer)
            return None
        name = str(next(self._numbers))
        place = self._places[name] = _Place(peer=peer, transport=transport, pool=pool, since=self._clock())
        self._count(pool, peer, 1)
        self._rest(name, place)
        return name

    def release(self, name: str) -> None:
        if (place := self._places.pop(name, None)) is not None:
            self._wake(name, place)
            self._count(place.pool, place.peer, -1)

    def begin(self, name: str) -> bool:
        place = self._places.get(name)
        if place is None:
            return True
        if place.pool is Pool.OVERFLOW and not self._has_room(place, Pool.STRANGER):
            return False
        self._wake(name, place)
        if place.pool is Pool.OVERFLOW:
            self._move(place, Pool.STRANGER)
        place.busy = place.used = True
        return True

    def end(self, name: str) -> None:
        if (place := self._places.get(name)) is not None:
            if place.pool is Pool.FOLLOWER:
                self._move(place, Pool.KNOWN)
            place.busy, place.since = False, self._clock()
            self._rest(name, place)

    def set_known(self, name: str) -> bool:
        place = self._places.get(name)
        return place is None or place.pool is not Pool.STRANGER or self._try_to_move(place, Pool.KNOWN)

    def set_following(self, name: str) -> bool:
        place = self._places.get(name)
        return place is None or self._try_to_move(place, Pool.FOLLOWER)

    def _try_to_move(self, place: _Place, pool: Pool) -> bool:
        if has_room := self._has_room(place, pool):
            self._move(place, pool)
        return has_room

    def _has_room(self, place: _Place, pool: Pool) -> bool:
        if self._make_room(place.peer, pool):
            return True
        self._complain(place.peer)
        return False

    def _move(self, place: _Place, pool: Pool) -> None:
        """Move a busy connection: an idle one would have to move among the idle ones, too."""
        self._count(place.pool, place.peer, -1)
        self._count(pool, place.peer, 1)
        place.pool = pool

    def _make_room(self, peer: str, pool: Pool, *, asked: bool = True) -> bool:
        """Return whether there is a place. `asked`: it has sent a request; only then an idle key holder gives way."""
        limit = self._per_peer or default_limit(peer)
        if self._counts[pool, peer] >= limit and not self._evict(pool, peer):
            return False
        if pool is Pool.FOLLOWER:
            return self._totals[pool] < max(1, self._in_all // 2)
        if pool is Pool.STRANGER and len(self._places) - self._totals[Pool.OVERFLOW] >= self._in_all - self._overflow:
            return self._evict(Pool.STRANGER) or (asked and self._evict(Pool.KNOWN))
        return True

    def _evict(self, pool: Pool, peer: str | None = None) -> bool:
        """Close the connection that is idle for the longest time. False: there is none.

        It looks at two of them only: an overload asks this for every connection.
        """
        silent_since = self._clock() - SILENCE_S
        idle = []
        for used in (True, False):
            for name in self._idle.get((pool, peer, used), ()):
                if used or self._places[name].since <= silent_since:
                    idle.append((self._places[name].since, name))
                break
        if not idle:
            return False
        _, name = min(idle)
        transport = self._places[name].transport
        self.release(name)
        transport.close()
        return True

    def _rest(self, name: str, place: _Place) -> None:
        """Enter a connection among the idle ones, as the last one."""
        for peer in (place.peer, None):
            self._idle.setdefault((place.pool, peer, place.used), {})[name] = None

    def _wake(self, name: str, place: _Place) -> None:
        """Remove a connection from the idle ones, if it is one."""
        for peer in (place.peer, None):
            key = (place.pool, peer, place.used)
            if (idle := self._idle.get(key)) is not None:
                idle.pop(name, None)
                if not idle:
                    del self._idle[key]

    def _count(self, pool: Pool, peer: str, change: int) -> None:
        self._totals[pool] += change
        self._counts[pool, peer] += change
        if not self._counts[pool, peer]:
            del self._counts[pool, peer]

    def _complain(self, peer: str) -> None:
        """Log at most once a minute."""
        now = self._clock()
        if now >= self._quiet_until:
            self._quiet_until = now + 60
            here = sum(number for (_, each), number in self._counts.items() if each == peer)
            logger.warning(
                "http: too many connections: {} in all, {} from {}; "
                "the limits are max_connections and max_connections_per_peer",
                len(self._places), here, peer,
            )  # fmt: skip
