"""Walk of a newcomer, recorded: a fresh clone and home, the README's commands, and a Telegram bot.

    python -m tests.docs.walk

It writes docs/pictures/first-minutes.cast and .svg, and survives.cast and .svg. Telegram is the fake server of the
tests; everything else is real. It fails if the first answer takes three minutes or longer.
"""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.docs.recording import COLUMNS, PROMPT, ROWS, Recording
from tests.support.free_port import free_port
from tests.support.telegram_server import TOKEN, TelegramServer
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "pictures"
PORT = "8642"
MAX_FIRST_ANSWER_S = 180
_ANN = 7
_DEADLINE_S = 300


class Walk:
    """Terminal of a person: commands of the README in a clone, with everything shown."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.clone = place / "hermes"
        self._port = str(free_port())
        self._daemon: subprocess.Popen[bytes] | None = None
        self.environ = {
            "HOME": str(place / "home"),
            "PATH": os.environ.get("HERMES_TEST_PATH", "/usr/local/bin:/usr/bin:/bin"),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "COLUMNS": str(COLUMNS),
            "LINES": str(ROWS),
            "HERMES_API_PORT": self._port,
        }
        (place / "home").mkdir()

    def type(self, recording: Recording, command: str) -> None:
        recording.add(PROMPT)
        time.sleep(0.4)
        recording.add(command + "\n")

    def run(
        self, recording: Recording, command: str, *, real: str = "", answers: Sequence[tuple[str, str]] = ()
    ) -> str:
        """Run a command at a terminal. `answers` are typed after the text that they wait for."""
        self.type(recording, command)
        parent, child = pty.openpty()
        shell = ["bash", "-c", real or command]
        process = subprocess.Popen(
            shell, cwd=self.clone, env=self.environ, stdin=child, stdout=child, stderr=child, start_new_session=True
        )
        os.close(child)
        said = self._record(parent, recording, list(answers))
        if process.wait(_DEADLINE_S) != 0:
            raise AssertionError(f"{command}: exit code {process.returncode}\n{said}")
        os.close(parent)
        return said

    def _record(self, parent: int, recording: Recording, answers: list[tuple[str, str]]) -> str:
        said, seen = "", 0
        deadline = time.monotonic() + _DEADLINE_S
        while time.monotonic() < deadline:
            if select.select([parent], [], [], 0.2)[0]:
                try:
                    data = os.read(parent, 65_536)
                except OSError:  # Linux: the other end is closed
                    return said
                if not data:
                    return said
                text = self.plain(data.decode(errors="replace"))
                recording.add(text)
                said += text
            if answers and answers[0][0] in said[seen:]:
                seen = len(said)
                time.sleep(0.6)
                os.write(parent, f"{answers.pop(0)[1]}\n".encode())
        raise AssertionError(f"no end within {_DEADLINE_S} s: {said}")

    def start(self, recording: Recording, command: str) -> None:
        """Start the daemon, and record its banner."""
        self.type(recording, command)
        self._daemon = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self.clone, env=self.environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=(self.place / "log").open("ab"), start_new_session=True,
        )  # fmt: skip
        assert self._daemon.stdout is not None
        for raw in self._daemon.stdout:
            line = self.plain(raw.decode())
            if line.startswith(("Hermes", "  ")):  # not the commands of make
                recording.add(line)
            if line.startswith("  Stop"):
                return
        raise AssertionError((self.place / "log").read_text())

    def kill(self) -> None:
        assert self._daemon is not None
        os.killpg(self._daemon.pid, signal.SIGKILL)
        self._daemon.wait()

    def plain(self, text: str) -> str:
        text = text.replace(str(self.place / "home"), "~").replace(str(self.clone), "~/hermes")
        return text.replace(f":{self._port}", f":{PORT}")


def record(place: Path, server: TelegramServer) -> Mapping[str, Recording]:
    walk = Walk(place)
    first = Recording(title="Hermes: from nothing to a Telegram bot")
    clone = ["git", "clone", "--quiet", f"file://{ROOT}", str(walk.clone)]
    subprocess.run(clone, check=True, env=walk.environ)
    begun = time.monotonic()
    walk.start(first, "make run")
    walk.run(first, ".venv/bin/hermes chat -z 'Hello!'")
    took = time.monotonic() - begun
    print(f"first answer after {took:.0f} s")
    if took >= MAX_FIRST_ANSWER_S:
        raise AssertionError(f"the first answer took {took:.0f} s")
    _telegram(walk, first, server)
    try:
        return {"first-minutes": first, "survives": _survive(walk)}
    finally:
        walk.kill()


def _telegram(walk: Walk, recording: Recording, server: TelegramServer) -> None:
    time.sleep(2)
    recording.clear()
    server.say(_ANN, _ANN, "/start")
    setup = ".venv/bin/hermes setup telegram"
    answers = (("Bot token", TOKEN), ("Id:", str(_ANN)), ("Restart the daemon now?", "y"))
    walk.run(recording, setup, real=f"{setup} --base-url {server.base_url}", answers=answers)
    before = len(server.replies(_ANN))
    server.say(_ANN, _ANN, "Good morning!")
    recording.add("\n[Telegram]  Ann: Good morning!\n")
    server.until(lambda: any("Good morning" in each for each in server.replies(_ANN)[before:]))
    recording.add(f"[Telegram]  Hermes: {server.replies(_ANN)[-1]}\n")


def _survive(walk: Walk) -> Recording:
    """A kill in the middle of an answer."""
    recording = Recording(title="kill -9 in the middle of an answer")
    recording.add("# in one terminal: a question whose answer takes 6 seconds\n")
    walk.type(recording, "hermes chat -z '!slow 6' &")
    asked = subprocess.Popen(
        [".venv/bin/hermes", "chat", "-z", "!slow 6"], cwd=walk.clone, env=walk.environ, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    hermes = f"{walk.clone}/.venv/bin/hermes"

    def is_running() -> bool:
        shown = subprocess.run([hermes, "ps"], env=walk.environ, capture_output=True, text=True, check=False)
        return "No session" not in shown.stdout

    eventually(is_running)
    walk.run(recording, "hermes ps", real=f"{hermes} ps")
    time.sleep(1)
    walk.type(recording, "kill -9 $(pgrep -f 'hermes daemon')")
    walk.kill()
    asked.kill()
    asked.wait()
    assert asked.stdout is not None
    asked.stdout.close()
    time.sleep(1)
    walk.start(recording, ".venv/bin/hermes daemon")
    eventually(lambda: not is_running())
    time.sleep(1)
    recording.clear()
    recording.add("# the same turn, finished by the next daemon\n")
    walk.run(recording, "hermes trace -", real=f"{hermes} trace -")
    walk.run(recording, "hermes show - | tail -n 2", real=f"{hermes} show - | tail -n 2")
    return recording


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="walk-", dir="/tmp") as place, TelegramServer() as server:
        recordings = record(Path(place), server)
    for name, recording in recordings.items():
        (FOLDER / f"{name}.cast").write_text(recording.asciicast(), encoding="utf-8")
        (FOLDER / f"{name}.svg").write_text(recording.svg(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
