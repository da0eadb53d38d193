"""sd_notify client: reports to systemd that the daemon is ready, reloading, stopping or alive.

Without `$NOTIFY_SOCKET` every call does nothing. No call waits or raises. When the socket is full, an important
message such as READY=1 is kept and sent with the next one.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import field
from typing import TYPE_CHECKING, Self

from hermes.domain.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Notifier:
    address: str = ""  # of the socket; empty: there is no service manager
    watchdog_interval_s: float | None = None  # how often to call `watchdog`; None: never
    unsent: list[str] = field(default_factory=list)

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Self:
        address = environ.get("NOTIFY_SOCKET", "")
        if address.startswith("@"):  # the abstract namespace begins with a NUL
            address = "\0" + address[1:]
        elif not address.startswith("/"):
            address = ""
        return cls(address=address, watchdog_interval_s=_watchdog_interval_s(environ) if address else None)

    def ready(self) -> None:
        self._send("READY=1", must=True)

    def reloading(self) -> None:
        """Report a reload that lasts until `ready`. systemd requires its monotonic start time."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}", must=True)

    def stopping(self) -> None:
        self._send("STOPPING=1", must=True)

    def watchdog(self) -> None:
        self._send("WATCHDOG=1")

    def extend_timeout(self, seconds: float) -> None:
        """Request more time for a start or a stop."""
        self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1_000_000)}")

    def _send(self, message: str, *, must: bool = False) -> None:
        if not self.address:
            return
        text = "\n".join([*self.unsent, message])
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto(text.encode("utf-8", "replace"), self.address)
        except BlockingIOError:
            self.unsent.extend([message] if must else [])
        except OSError:
            return  # a missing service manager must not stop the daemon
        else:
            self.unsent.clear()


def _watchdog_interval_s(environ: Mapping[str, str]) -> float | None:
    """Return half of the watchdog timeout, as systemd recommends."""
    if environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None  # meant for another process
    usec = environ.get("WATCHDOG_USEC", "")
    return int(usec) / 2_000_000 if usec.isascii() and usec.isdecimal() and 0 < int(usec) < 10**18 else None
