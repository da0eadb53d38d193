"""Terminal of the test's own in tmux: a program runs in it, keys go in, its screen comes out as text."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from tests.support.waiting import eventually

IS_MISSING = shutil.which("tmux") is None


class TmuxTerminal:
    """`with TmuxTerminal(argv, environ) as terminal:` starts it; the end kills the terminal."""

    def __init__(
        self,
        argv: list[str],
        environ: Mapping[str, str],
        *,
        columns: int = 80,
        rows: int = 24,
        cwd: Path | None = None,
    ) -> None:
        given = [f"{name}={value}" for name, value in environ.items()]
        self._start = ["new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(cwd or Path.home())]
        self._argv = ["env", "-u", "NO_COLOR", "TERM=screen-256color", *given, *argv]
        self._directory = tempfile.TemporaryDirectory(prefix="tmux-")  # short: it holds a socket

    def __enter__(self) -> Self:
        self._tmux(*self._start, *self._argv)
        return self

    def __exit__(self, *_: object) -> None:
        self._tmux("kill-server", check=False)
        self._directory.cleanup()

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names, such as `Enter` and `C-c`."""
        self._tmux("send-keys", *keys)

    def paste(self, text: str) -> None:
        """Paste in brackets, as terminals do."""
        file = Path(self._directory.name) / "paste"
        file.write_text(text, encoding="utf-8")
        self._tmux("load-buffer", str(file))
        self._tmux("paste-buffer", "-p", "-r")

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self, *, escapes: bool = False) -> str:
        return self._tmux("capture-pane", "-p", *(("-e",) if escapes else ()))

    def shows(self, *texts: str, within_s: float = 50.0) -> str:
        """Return the screen once it shows all texts."""
        try:
            eventually(lambda: self._is_shown(texts), within_s)
        except AssertionError:
            raise AssertionError(f"the screen never showed {texts}:\n{self.screen()}") from None
        return self.screen()

    def _is_shown(self, texts: tuple[str, ...]) -> bool:
        screen = self.screen()
        return all(text in screen for text in texts)

    @property
    def pid(self) -> int:
        return int(self._tmux("display-message", "-p", "#{pane_pid}"))

    def is_over(self) -> bool:
        """Return whether the program has ended."""
        return not self._tmux("list-panes", check=False).strip()

    def _tmux(self, *arguments: str, check: bool = True) -> str:
        socket = str(Path(self._directory.name) / "s")
        done = subprocess.run(
            ["tmux", "-S", socket, "-f", "/dev/null", *arguments], capture_output=True, text=True, check=False
        )
        assert not check or done.returncode == 0, (arguments, done.stderr)
        return done.stdout
