"""Shell in which the commands of one page run: a home, a port, a daemon and fake servers of their own."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.free_port import free_port
from tests.support.scripted_model import ScriptedModel
from tests.support.slack_server import APP_TOKEN, BOT_TOKEN, SlackServer
from tests.support.telegram_server import TOKEN, TelegramServer
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]
PORT = "8642"  # of the API on the pages
MODEL_ADDRESS = "127.0.0.1:11434"  # of a model server on the pages
_COMMAND_S = 90
_FOLLOWING = re.compile(r"^hermes (?:tail|top|logs (?:.* )?-f|logs (?:.* )?--follow|daemon)\b")
_FOLLOWED_S = 2
# Commands whose pages assume that there is a conversation.
_OF_SESSION = re.compile(r"^hermes (?:(?:why|trace|show|export|delete|logs|-r) |sessions\b)")


class PageShell:
    """`with PageShell() as shell:`, then `shell.run(COMMAND)`. Exports and directories last until the end."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._home = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="hd-", dir="/tmp")))
        self._port = str(free_port())
        self._daemon: subprocess.Popen[bytes] | None = None
        self._banner = ""
        self._has_session = False
        self._model: ScriptedModel | None = None
        self._telegram: TelegramServer | None = None
        self._slack: SlackServer | None = None
        self.directory = self._home / "project"

    def __enter__(self) -> Self:
        self.directory.mkdir()
        (self.directory / "telegram-token.txt").write_text(TOKEN + "\n", encoding="ascii")
        (self.directory / "slack-tokens.txt").write_text(f"{BOT_TOKEN}\n{APP_TOKEN}\n", encoding="ascii")
        (self._home / "state").write_text("", encoding="ascii")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._daemon is not None:
            self._daemon.kill()
            self._daemon.wait()
            assert self._daemon.stdout is not None
            self._daemon.stdout.close()
        self._stack.close()

    @property
    def environ(self) -> dict[str, str]:
        return {
            "HOME": str(self._home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "HERMES_API_PORT": self._port,
            "PYTHONPATH": f"{ROOT}:.",
        }

    def start_daemon(self) -> None:
        """Start the daemon, if none runs."""
        if self._daemon is not None and self._daemon.poll() is None:
            return
        if self._daemon is not None and self._daemon.stdout is not None:
            self._daemon.stdout.close()
        with (self._home / "daemon.log").open("ab") as log:
            self._daemon = subprocess.Popen(
                ["hermes", "daemon"], env=self.environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log
            )
        assert self._daemon.stdout is not None
        lines = [self._daemon.stdout.readline().decode()]
        assert " is ready at " in lines[0], (self._home / "daemon.log").read_text(encoding="utf-8")[-2000:]
        while "Stop" not in lines[-1] and lines[-1]:
            lines.append(self._daemon.stdout.readline().decode())
        self._banner = "".join(lines)

    def run(self, command: str, given: str = "") -> tuple[int, str]:
        """Run a command in bash; return its exit code and its output, with the page's own ports."""
        if command.strip() in {"make run", "hermes daemon"}:
            return 0, self._on_page(self._banner)
        if _OF_SESSION.search(command) and not self._has_session:
            self._has_session = True
            code, output = self.run("hermes chat -z 'Hello!'")
            assert code == 0, output
        state = self._home / "state"
        keep = f"""{{ export -p; echo cd '"'$PWD'"'; }} > {state}.new && mv {state}.new {state}"""
        script = f". {state}\n{self._substituted(command)}\ncode=$?\n{keep}\nexit $code\n"
        following = _FOLLOWING.match(command)
        prefix = ["timeout", "-s", "INT", str(_FOLLOWED_S)]
        words = shlex.split(self._substituted(command), comments=True) if following else []
        done = subprocess.run(
            [*prefix, *words] if following else ["bash", "-c", script],
            env=self.environ,
            cwd=self.directory,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=_COMMAND_S,
        )
        code = 0 if following and done.returncode in {124, 130, 1} else done.returncode
        if re.search(r"\bhermes stop\s*(#.*)?$", command) and self._daemon is not None:
            eventually(lambda: self._daemon is not None and self._daemon.poll() is not None)
        return code, self._on_page(done.stdout)

    def _substituted(self, command: str) -> str:
        """Replace addresses of the page by those of this shell."""
        command = command.replace(f":{PORT}", f":{self._port}").replace(".venv/bin/hermes", "hermes")
        if MODEL_ADDRESS in command:
            command = command.replace(MODEL_ADDRESS, self.model_address)
        for name, server in (("telegram", self._telegram_address), ("slack", self._slack_address)):
            if re.search(rf"\bhermes setup {name}\b", command):
                command = command.replace(f"hermes setup {name}", f"hermes setup {name} --base-url {server()}")
        return command

    def substituted_text(self, text: str) -> str:
        return text.replace(f":{PORT}", f":{self._port}")

    def _on_page(self, output: str) -> str:
        return output.replace(f":{self._port}", f":{PORT}").replace(str(self._home), "~")

    @property
    def model_address(self) -> str:
        if self._model is None:
            self._model = self._stack.enter_context(ScriptedModel())
        return self._model.server.base_url.removeprefix("http://").removesuffix("/v1")

    def _telegram_address(self) -> str:
        if self._telegram is None:
            self._telegram = self._stack.enter_context(TelegramServer())
        return self._telegram.base_url

    def _slack_address(self) -> str:
        if self._slack is None:
            self._slack = self._stack.enter_context(SlackServer())
        return self._slack.base_url
