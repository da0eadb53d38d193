"""Daemon in a child process, for a chat when none runs. The chat talks to it as to any other daemon."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Mapping


class ChildDaemon:
    """It ends with this process."""

    def __init__(self, environ: Mapping[str, str], *, shows_log: bool) -> None:
        """`shows_log`: its warnings and errors go to stderr, else they are kept for `problem`."""
        self._environ = environ
        self._errors = None if shows_log else tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, or start it again if it has ended."""
        if self._process is not None and self._process.poll() is None:
            return
        self._process = subprocess.Popen(
            [sys.executable, "-m", "hermes.cli.chat.embedded"],
            env=dict(self._environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C on the terminal is not for it
        )

    def await_ready(self) -> None:
        """Wait until it answers. Raises HermesError, or SystemExit if it has printed why it cannot."""
        assert self._process is not None
        assert self._process.stdout is not None
        if self._process.stdout.readline():
            return
        code = self._process.wait()
        if self._errors is None:
            sys.exit(code)
        raise HermesError(f"the daemon of this chat did not start: {self.problem().removeprefix('hermes: ')}")

    def problem(self) -> str:
        """Return why it has ended; empty while it runs."""
        if self._process is None or self._errors is None or self._process.poll() is None:
            return ""
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {self._process.returncode}"

    def close(self) -> None:
        """End it, and wait until it has stored its work."""
        if self._process is not None:
            self._process.communicate()  # closes its stdin
        if self._errors is not None:
            self._errors.close()
