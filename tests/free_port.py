"""A port for what cannot choose one itself, or has to find the same one again."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_FIRST = 10_000


def free_port() -> int:
    """Of those that the kernel never gives to whoever asks for any: nobody else has it before it is used."""
    chosen_by_kernel = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    while True:
        port = random.SystemRandom().randrange(_FIRST, chosen_by_kernel)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
