"""TCP ports on which this process listens: each server registers its own while it is open.

The set is per process, like its sockets. Tools cannot connect to these ports.
"""

from __future__ import annotations

from collections import Counter

_open: Counter[int] = Counter()


def opened(port: int) -> None:
    _open[port] += 1


def closed(port: int) -> None:
    _open[port] -= 1


def own_ports() -> frozenset[int]:
    return frozenset(port for port, count in _open.items() if count > 0)
