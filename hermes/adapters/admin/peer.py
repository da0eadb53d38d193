"""Process at the other end of a Unix socket.

A process id alone proves nothing: the process that connected may have ended and left the connection to a child, and
its id may belong to another process. A pidfd of the peer (Linux 6.5) identifies it. Without one, the start time of
the process is compared with the one at the time of the connection.
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
import socket
import struct
import sys
from weakref import WeakKeyDictionary

from hermes.adapters.admin.peer_ancestry import OUTSIDE, ProcessLook, look_at
from hermes.domain.values import dataclass

_SO_PEERPIDFD = 77
_LOCAL_PEERCRED = 0x001  # macOS and the BSDs: struct xucred
_LOCAL_PEERPID = 0x002  # macOS
_SOL_LOCAL = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    pid: int
    uid: int


def peer_of(transport: asyncio.BaseTransport | None) -> Peer:
    """Return the peer's user and process. Raises OSError."""
    connected = _socket_of(transport)
    if sys.platform.startswith("linux"):
        pid, uid, _gid = struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    else:
        pid = connected.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID)
        _version, uid = struct.unpack("2I", connected.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 76)[:8])
    return Peer(pid=pid, uid=uid)


class PeerIdentity:
    """Checks that the process that opened a connection still is the one behind its process id."""

    def __init__(self) -> None:
        self._first_looks: WeakKeyDictionary[asyncio.BaseTransport, ProcessLook] = WeakKeyDictionary()

    def connected(self, transport: asyncio.BaseTransport, peer: Peer) -> None:
        """Record the peer. Call it when the connection is accepted."""
        if pidfd_runs(_socket_of(transport)) is None and (look := look_at(peer.pid)) is not None:
            self._first_looks[transport] = look

    def is_same(self, transport: asyncio.BaseTransport | None, peer: Peer) -> bool:
        """Return True if that process still runs. False if in doubt."""
        try:
            runs = pidfd_runs(_socket_of(transport))
        except OSError:
            return False
        if runs is not None or transport is None:
            return bool(runs)
        if peer.pid == OUTSIDE:
            return True  # without a start time there is nothing to compare
        first, now = self._first_looks.get(transport), look_at(peer.pid)
        return first is not None and now is not None and not now.has_ended and now.started == first.started


def pidfd_runs(connected: socket.socket) -> bool | None:
    """Ask the kernel by the peer's pidfd if it runs. None if the kernel offers none."""
    try:
        pidfd = connected.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError as error:
        return None if error.errno == errno.ENOPROTOOPT else False
    try:
        poller = select.poll()
        poller.register(pidfd, select.POLLIN)  # readable once the process has ended
        return not poller.poll(0)
    finally:
        os.close(pidfd)


def _socket_of(transport: asyncio.BaseTransport | None) -> socket.socket:
    connected: socket.socket | None = None if transport is None else transport.get_extra_info("socket")
    if connected is None:
        raise ConnectionResetError(errno.ECONNRESET, "the connection is closed")
    return connected
