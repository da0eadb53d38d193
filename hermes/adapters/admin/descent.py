"""Tools have no business on the admin socket: an agent must not approve its own commands, or stop its own daemon.

They run as the daemon's user and so could reach it. The kernel says which process connects; one that descends from
the daemon is refused, whatever it asks for.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web
from loguru import logger

from hermes.adapters.openai_api.problem import refusal

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

_GENERATIONS = 64


def peer_of(transport: asyncio.BaseTransport | None) -> tuple[int, int]:
    """Process and user at the other end."""
    assert transport is not None
    peer: socket.socket = transport.get_extra_info("socket")
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _gid = struct.unpack("3i", credentials)
    return pid, uid


@web.middleware
async def refuse_own_tools(request: web.Request, handler: Handler) -> web.StreamResponse:
    pid, _ = peer_of(request.transport)
    if pid != os.getpid() and await asyncio.to_thread(descends_from, pid, os.getpid()):
        logger.warning("refused process {} on the admin socket: it was started by a tool", pid)
        raise refusal(403, "from_a_tool", "A tool may not operate the daemon that runs it.")
    return await handler(request)


def descends_from(pid: int, ancestor: int) -> bool:
    """Where the system does not tell, nobody does."""
    for _ in range(_GENERATIONS):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            return False
        pid = int(stat.rpartition(")")[2].split()[1])
        if pid == ancestor:
            return True
        if pid <= 1:
            return False
    return True  # nobody honest has so long a line
