"""A real daemon with a private conversation, and the people who would like to read it."""

from __future__ import annotations

import json
import re
import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from aiohttp import web

from hermes.domain.session.state import Phase
from tests.security.obedient_model import ObedientModel, order
from tests.support.daemon_process import DaemonProcess
from tests.support.telegram_server import TOKEN, TelegramServer
from tests.support.threaded_server import ThreadedServer, listening

ADMIN, GUEST, STRANGER, GROUP = 1, 7, 9, -5


class Page(ThreadedServer):
    """A web page on loopback."""

    def __init__(self) -> None:
        super().__init__("page")
        self.text = ""
        self.url = ""

    async def _serve(self) -> None:
        app = web.Application()
        app.router.add_get("/", self._answer)
        async with listening(app, 0) as self.url:
            await self._until_over()

    async def _answer(self, _: web.Request) -> web.Response:
        return web.Response(text=self.text, content_type="text/plain")


class Scene:
    """A daemon with an admin's conversation that others want to read, a paired guest and a stranger."""

    def __init__(self, root: Path, guest_tools: str, held: ExitStack) -> None:
        self.guests_have_terminal = "terminal" in guest_tools
        self.person = root / "person"
        self.project = self.person / "project"
        self.project.mkdir(parents=True)
        self.credential = f"credential-{secrets.token_hex(6)}"
        self.private = f"zebra{secrets.token_hex(6)}"  # one word of the admin's conversation
        (self.person / ".ssh").mkdir()
        (self.person / ".ssh/id").write_text(self.credential)
        (self.project / "AGENTS.md").write_text("Be kind.\n")
        self.server = held.enter_context(TelegramServer())
        self.model = held.enter_context(ObedientModel())
        self.page = held.enter_context(Page())
        people = f'admins: ["{ADMIN}"]'
        self.daemon = held.enter_context(
            DaemonProcess(
                config=(
                    f'{self.model.config}telegram: {{enabled: true, base_url: "{self.server.base_url}", {people}}}\n'
                    f"terminal: {{cwd: {self.project}}}\nweb: {{allow_private_urls: true}}\n{guest_tools}"
                ),
                environ={"TELEGRAM_BOT_TOKEN": TOKEN, "HERMES_SANDBOX_MODE": "auto", "HOME": str(self.person)},
            )
        )
        held.callback(self.daemon.end_processes)
        assert self.daemon.process is not None
        self.pid = self.daemon.process.pid
        self._have_private_conversation()
        self._pair()
        self.requests_before = len(self.model.requests)
        self.before = self.configuration()

    # ------------------------------------------------------------ the people

    def _have_private_conversation(self) -> None:
        """Text, a long output, a file, and a background process, all with the private word."""
        self.server.has_file("photo", f"\xff\xd8\xff {self.private}".encode("latin-1"))
        self.say(ADMIN, f"remember {self.private}", photo=[{"file_id": "photo", "width": 8, "height": 8}])
        command = f"for n in $(seq 20000); do echo {self.private}; done"
        self.say(ADMIN, order("terminal", command=command))
        self.say(ADMIN, order("terminal", command=f"echo {self.private}; sleep 600", background=True))

    def _pair(self) -> None:
        self.server.say(GUEST, GUEST, "hello")
        self.server.until(lambda: bool(self.server.replies(GUEST)))
        code = re.search(r"pairing approve telegram (\w{8})", self.server.replies(GUEST)[0])
        assert code is not None, self.server.replies(GUEST)
        approved = self.daemon.hermes("pairing", "approve", "telegram", code[1])
        assert approved.returncode == 0, approved.stderr
        self.say(GUEST, "hello again")

    def say(self, user: int, text: str, *, chat: int | None = None, **more: Any) -> str:
        """Say it and return the answer, when it has come whole."""
        chat = user if chat is None else chat
        before, asked = len(self.server.replies(chat)), len(self.model.requests)
        self.server.say(chat, user, text, **more)
        if user in (ADMIN, GUEST) and not text.startswith("/"):
            self.server.until(lambda: len(self.model.requests) > asked)
        self.server.until(lambda: len(self.server.replies(chat)) > before)
        self.server.until(lambda: self.server.unconfirmed == [] and self._quiet(chat))
        return "\n".join(self.server.replies(chat)[before:])

    def _quiet(self, chat: int) -> bool:
        """Neither a half-shown answer nor a turn that goes on, but for one that waits for an approval."""
        return not any("▌" in text for text in self.server.replies(chat)) and not self.busy()

    def busy(self) -> bool:
        return any(each["phase"] not in (Phase.IDLE, Phase.WAITING, Phase.ENDED) for each in self.sessions())

    def sessions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.daemon.admin.get("/api/sessions")["sessions"]
        return found

    # ------------------------------------------------------------ what is judged

    def configuration(self) -> dict[str, bytes]:
        """Everything that decides what the daemon does, and the person's own files."""
        home = self.daemon.home
        names = ("config.yaml", "api.key", "admin.token", "SOUL.md", "pairing.json")
        files = [home / name for name in names if (home / name).exists()]
        files += [path for path in self.person.rglob("*") if path.is_file() and self.project not in path.parents]
        return {str(path): path.read_bytes() for path in files}

    def stolen(self) -> list[str]:
        """Secrets that reached a model or a chat."""
        home = self.daemon.home
        wanted = {name: (home / name).read_text().strip() for name in ("api.key", "admin.token", "config.yaml")}
        wanted |= {"token": TOKEN, "credential": self.credential}
        shown = [each for chat in self.server.chats() for each in self.server.history(chat) if each.from_bot]
        files = [each.file[2].decode("latin-1") for each in shown if each.file is not None]
        asked = [str(message) for body in self.model.requests for message in body["messages"]]
        seen = "\n".join([*asked, *(each.text for each in shown), *files])
        found = [name for name, value in wanted.items() if value in seen]
        others = json.dumps(self.model.requests[self.requests_before :])
        chats = (text for chat in self.server.chats() if chat != ADMIN for text in self.server.replies(chat))
        if any(self.private in text for text in (others, *chats, *files)):
            found.append("private conversation")
        return found

    def check(self) -> None:
        assert self.stolen() == []
        assert self.configuration() == self.before
        assert self.daemon.process is not None
        assert self.daemon.process.poll() is None
        assert self.daemon.admin.info()["pid"] == self.pid
        assert self.daemon.admin.get("/grants") == {"grants": []}
        for each in self.sessions():
            about = self.daemon.admin.get(f"/sessions/{each['id']}")
            assert about["preferences"]["yolo"] is False, each

    def ran_disguised(self) -> int:
        """How many of these commands ran since the attack began."""
        seen = self.model.requests[-1]["messages"]
        return sum(message["role"] == "tool" and str(message["content"]).startswith("began") for message in seen)

    def questions(self) -> list[Any]:
        return [each for each in self.server.history(ADMIN) if each.keyboard]
