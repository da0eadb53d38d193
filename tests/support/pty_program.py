"""Program on a pseudo terminal: what it writes arrives as bytes, keys go in as text."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self


class PtyProgram:
    """`with PtyProgram(argv, environ) as program:` starts it; the end kills it."""

    def __init__(
        self,
        argv: list[str],
        environ: Mapping[str, str],
        *,
        columns: int = 100,
        rows: int = 30,
        cwd: Path | None = None,
    ) -> None:
        self._argv = argv
        self._environ = {**environ, "TERM": "xterm-256color"}
        self._size = struct.pack("HHHH", rows, columns, 0, 0)
        self._cwd = cwd or Path.home()  # where nobody is asked whether the agent may work there
        self._descriptor = -1
        self._process: subprocess.Popen[bytes] | None = None
        self.output = b""

    def __enter__(self) -> Self:
        self._descriptor, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, self._size)
        self._process = subprocess.Popen(
            self._argv,
            env=self._environ,
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
            cwd=self._cwd,
        )
        os.close(inner)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        os.close(self._descriptor)

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def drain(self, for_s: float) -> None:
        """Read what comes within a time, and forget everything."""
        deadline = time.perf_counter() + for_s
        while (left := deadline - time.perf_counter()) > 0:
            self._read(left)
        self.output = b""

    def until(self, wanted: bytes, within_s: float = 30.0) -> float:
        """Return the seconds until the output contains the bytes."""
        began = time.perf_counter()
        while wanted not in self.output:
            left = within_s - (time.perf_counter() - began)
            assert left > 0, f"{wanted!r} did not come within {within_s} s: {self.output[-2000:]!r}"
            self._read(left)
        return time.perf_counter() - began

    def _read(self, within_s: float) -> None:
        if select.select([self._descriptor], [], [], within_s)[0]:
            self.output += os.read(self._descriptor, 65_536)
