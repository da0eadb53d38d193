"""Limit of wrong logins of each address, also on loopback. In memory, bounded."""

from __future__ import annotations

import ipaddress
import math
from collections import deque
from typing import Final

from hermes.ports.given import Clock

MAX_WRONG: Final = 10  # wrong logins of an address within the window
WINDOW_S: Final = 300.0
MAX_PEERS: Final = 1000
_IPV6_NETWORK: Final = 64  # bits: one person usually has all addresses of such a network


class LoginLimit:
    """Event loop only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wrong: dict[str, deque[float]] = {}  # times of wrong logins; the peer that failed last comes last

    def wait_s(self, address: str) -> int:
        """Return for how many seconds logins from this address are refused; 0: they are not."""
        peer, now = _peer(address), self._clock()
        times = self._wrong.get(peer)
        while times and now - times[0] >= WINDOW_S:
            times.popleft()
        if not times:
            self._wrong.pop(peer, None)
            return 0
        return math.ceil(times[0] + WINDOW_S - now) if len(times) >= MAX_WRONG else 0

    def count(self, address: str) -> None:
        """Count a wrong login."""
        peer = _peer(address)
        times = self._wrong.pop(peer, None) or deque(maxlen=MAX_WRONG)
        while len(self._wrong) >= MAX_PEERS:
            del self._wrong[next(iter(self._wrong))]
        times.append(self._clock())
        self._wrong[peer] = times


def _peer(address: str) -> str:
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv4Address):
        return str(known)
    if known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    return str(ipaddress.ip_network((known, _IPV6_NETWORK), strict=False))
