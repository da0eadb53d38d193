"""sd_notify: tells systemd that the daemon is ready, stopping or alive.

Without `$NOTIFY_SOCKET` every call does nothing. No call waits and none raises: a service manager that does not
listen is no reason for a daemon to stop. One that has not read for a while takes no more; what it must know, that the
daemon is ready say, is told with the next word then.
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
    address: str = ""  # where to send to; empty: nobody listens
    watchdog_interval_s: float | None = None  # how often to call `watchdog`; None: nobody waits for it
    untold: list[str] = field(default_factory=list)

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
        """Until `ready` is said again. systemd wants to know since when, by its own clock."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}", must=True)

    def stopping(self) -> None:
        self._send("STOPPING=1", must=True)

    def watchdog(self) -> None:
        self._send("WATCHDOG=1")

    def extend_timeout(self, seconds: float) -> None:
        """Ask for this much more time before systemd loses patience with a start or a stop."""
        self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1_000_000)}")

    def _send(self, message: str, *, must: bool = False) -> None:
        if not self.address:
            return
        words = "\n".join([*self.untold, message])
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto(words.encode("utf-8", "replace"), self.address)
        except BlockingIOError:
            self.untold.extend([message] if must else [])
        except OSError:
            return  # said above: nobody listens, and there is no one to tell
        else:
            self.untold.clear()


def _watchdog_interval_s(environ: Mapping[str, str]) -> float | None:
    """Half of what systemd waits for, as it advises."""
    if environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None  # meant for another process
    usec = environ.get("WATCHDOG_USEC", "")
    return int(usec) / 2_000_000 if usec.isascii() and usec.isdecimal() and 0 < int(usec) < 10**18 else None
