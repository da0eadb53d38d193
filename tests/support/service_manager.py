"""What systemd hears of the daemon. It listens all the time: what is said while its queue is full is lost."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Self

_LOOK_UP_S = 0.1


class ServiceManager:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.heard: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="service manager")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

    def __enter__(self) -> Self:
        self._socket.bind(str(self.path))
        self._socket.settimeout(_LOOK_UP_S)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(30)
        self._socket.close()

    def _listen(self) -> None:
        while True:
            try:
                self.heard.extend(self._socket.recv(4096).decode().splitlines())
            except TimeoutError:
                if self._over.is_set():
                    return
