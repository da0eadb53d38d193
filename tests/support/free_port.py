"""A port for whoever has to know it before it is listened on, or has to find the same one again."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 10_000


def free_port() -> int:
    """Not one of those that the kernel hands out: such a one could be somebody else's a moment later."""
    handed_out_from = int(_RANGE.read_text(encoding="ascii").split()[0]) if _RANGE.exists() else 32_768
    while True:
        port = random.SystemRandom().randrange(_LOWEST, max(handed_out_from, _LOWEST + 1_000))
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
