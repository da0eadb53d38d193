"""A fake Telegram Bot API on loopback, in a thread of its own: it outlives a daemon that a test kills.

Faithful where it matters: an update waits until a later offset confirms it, however often it is fetched; a long poll
waits; of two pollers the older one gets a 409; messages have ids and are edited under Telegram's rules. Faults are
queued with `fail`: each plays once, for the next call of that method.

    with TelegramServer() as server:
        server.say(7, 7, "hello")
        server.until(lambda: server.texts(7) == ["hello", "hello yourself"])
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import aiohttp
from aiohttp import web

from tests.support.telegram_state import BOT_ID, BOT_NAME, Refusal, Shown, TelegramState
from tests.support.threaded_server import ThreadedServer, listening

T = TypeVar("T")

TOKEN = f"{BOT_ID}:test-token-of-the-fake-telegram-server"
DEADLINE_S = 40.0
PAGE = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong with a call; the effect takes place only when it is said how its answer fares."""

    status: int = 0  # with `page` a page of HTML, else Telegram's kind of error
    page: bytes = b""  # with a status of 200 it comes instead of an answer, after the effect
    description: str = "Internal Server Error"
    retry_after: int = 0
    lost: bool = False  # the effect takes place, and the connection closes without an answer
    delay_s: float = 0.0  # before an answer that is otherwise good
    held: threading.Event | None = None  # the same until it is set

    @staticmethod
    def flood(retry_after: int) -> Fault:
        return Fault(status=429, description=f"Too Many Requests: retry after {retry_after}", retry_after=retry_after)

    @staticmethod
    def bad_gateway() -> Fault:
        return Fault(status=502, page=PAGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    url: str = ""
    secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    method: str
    about: dict[str, Any]
    at: float


class TelegramServer(ThreadedServer):
    """Every method here can be called from any thread."""

    def __init__(self, *, port: int = 0) -> None:
        super().__init__("fake telegram")
        self.base_url = ""
        self.calls: list[Call] = []
        self.privacy = False  # hides what is said in groups from the bot
        self.undelivered: dict[str, Any] = {}  # what Telegram says of a webhook that it cannot reach
        self.fetched: dict[int, float] = {}  # when each update was given out first, by its id
        self._world = TelegramState()
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._faults: dict[str, deque[Fault]] = defaultdict(deque)
        self._port = port
        self._poller: asyncio.Future[None] | None = None  # set to wake or to end the long poll that waits
        self._webhook = Webhook()
        self._bringing: dict[int, asyncio.Task[None]] = {}  # updates to the webhook

    # ------------------------------------------------------------ what people do

    def say(self, chat: int, user: int, text: str, **more: Any) -> int:
        """A person writes; see `World.say`. Groups have negative ids. Returns the message's id."""
        return self._do(lambda: self._world.say(chat, user, text, **more)).id

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """What is said within is fetched together."""
        with self._lock:
            yield

    def rewrite(self, chat: int, message: int, text: str, **more: Any) -> None:
        """A person edits a message."""
        self._do(lambda: self._world.rewrite(chat, message, text, **more))

    def press(self, chat: int, message: int, label: str, user: int) -> str:
        """A person presses the button with that label. Returns the query's id."""
        return self._do(lambda: self._world.press(chat, message, label, user))

    def migrate(self, group: int, supergroup: int) -> None:
        """A group becomes a supergroup."""
        self._do(lambda: self._world.migrate(group, supergroup))

    def has_file(self, file_id: str, data: bytes) -> None:
        """From now on a person can send it."""
        self._do(lambda: self._world.files.update({file_id: data}))

    def delete(self, chat: int, message: int) -> None:
        self._do(lambda: setattr(self._world.message(chat, message), "deleted", True))

    def block(self, chat: int) -> None:
        """A person blocks the bot."""
        self._do(lambda: self._world.blocked.add(chat))

    def post(self, kind: str, content: Any) -> int:
        """Any update, as JSON. Returns its id."""
        return self._do(lambda: self._world.post(kind, content))

    # ------------------------------------------------------------ what goes wrong

    def fail(self, method: str, *faults: Fault) -> None:
        """For the next calls of that method, such as `sendMessage`."""
        with self._lock:
            self._faults[method].extend(faults)

    # ------------------------------------------------------------ what is seen

    def history(self, chat: int) -> list[Shown]:
        """What a person sees in the chat, the oldest first."""
        with self._lock:
            return [each for each in self._world.messages if each.chat == chat and not each.deleted]

    def texts(self, chat: int) -> list[str]:
        return [each.text for each in self.history(chat)]

    def replies(self, chat: int) -> list[str]:
        """What the bot has said there, as it reads now."""
        return [each.text for each in self.history(chat) if each.from_bot]

    def chats(self) -> list[int]:
        with self._lock:
            return sorted({each.chat for each in self._world.messages})

    @property
    def violations(self) -> list[str]:
        with self._lock:
            return list(self._world.violations)

    @property
    def unconfirmed(self) -> list[int]:
        """The ids of updates that would be sent again."""
        with self._lock:
            return [each["update_id"] for each in self._world.updates]

    @property
    def typing(self) -> list[int]:
        with self._lock:
            return [chat for chat, _ in self._world.typing]

    def reactions(self, chat: int, message: int) -> list[str]:
        """Those of the bot."""
        with self._lock:
            return self._world.reactions.get((chat, message), [])

    @property
    def menu(self) -> list[str]:
        """The commands that a person is offered."""
        with self._lock:
            return list(self._world.menu)

    @property
    def toasts(self) -> list[str]:
        with self._lock:
            return list(self._world.toasts)

    @property
    def answered_queries(self) -> list[str]:
        with self._lock:
            return list(self._world.answered_queries)

    @property
    def webhook(self) -> str:
        """Where updates are brought; empty: they are fetched."""
        with self._lock:
            return self._webhook.url

    @property
    def polls(self) -> bool:
        """Whether somebody waits for updates now."""
        with self._lock:
            return self._poller is not None

    def count(self, method: str) -> int:
        with self._lock:
            return sum(call.method == method for call in self.calls)

    def until(self, condition: Callable[[], bool], within_s: float = DEADLINE_S) -> None:
        """Waits for something that a call or a person brings about."""
        deadline = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < deadline, f"not within {within_s:g} s; calls: {self._last_calls()}"
            with self._changed:
                self._changed.wait(0.02)  # it may also be somebody else's doing

    def _last_calls(self) -> list[str]:
        with self._lock:
            return [each.method for each in self.calls[-20:]]

    # ------------------------------------------------------------ the server

    def _do(self, change: Callable[[], T]) -> T:
        with self._changed:
            result = change()
            self._changed.notify_all()
        self._in_loop(self._wake)
        return result

    def _wake(self) -> None:
        self._bring()
        if self._poller is not None and not self._poller.done():
            self._poller.set_result(None)

    async def _serve(self) -> None:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/bot{token}/{method}", self._answer)
        app.router.add_get("/file/bot{token}/files/{name}", self._answer_file)
        async with listening(app, self._port) as self.base_url:
            await self._until_over()
            for task in self._bringing.values():
                task.cancel()
            await asyncio.gather(*self._bringing.values(), return_exceptions=True)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        given = {**request.query, **await request.post()}
        about = {key: _decoded(key, value) for key, value in given.items() if isinstance(value, str)}
        about |= {key: value for key, value in given.items() if isinstance(value, web.FileField)}
        fault = self._note(method, about)
        try:
            _refuse(fault, request.match_info["token"])
            result = await self._perform(method, about)
        except Refusal as refusal:
            if fault.page:
                return web.Response(status=fault.status, body=fault.page, content_type="text/html")
            return _refused(refusal)
        finally:
            with self._changed:
                self._changed.notify_all()
        if fault.lost:
            assert request.transport is not None
            request.transport.abort()
        await asyncio.sleep(fault.delay_s)
        while fault.held is not None and not fault.held.is_set():  # noqa: ASYNC110 - of another thread's doing
            await asyncio.sleep(0.005)
        if fault.page:
            return web.Response(body=fault.page, content_type="text/html")
        return web.json_response({"ok": True, "result": result})

    def _note(self, method: str, about: dict[str, Any]) -> Fault:
        with self._lock:
            self.calls.append(Call(method=method, about=about, at=time.monotonic()))
            return self._faults[method].popleft() if self._faults[method] else Fault()

    async def _perform(self, method: str, about: dict[str, Any]) -> Any:
        if method == "getUpdates":
            return await self._poll(about)
        with self._lock:
            match method:
                case "getMe":
                    me = {"id": BOT_ID, "is_bot": True, "first_name": "Hermes", "username": BOT_NAME}
                    return {**me, "can_join_groups": True, "can_read_all_group_messages": not self.privacy}
                case "sendMessage" | "editMessageText" | "deleteMessage":
                    world = self._world
                    does = {"sendMessage": world.send, "editMessageText": world.edit, "deleteMessage": world.delete}
                    return does[method](about)
                case "sendPhoto" | "sendVoice" | "sendAudio" | "sendVideo" | "sendDocument":
                    kind = method.removeprefix("send").lower()
                    with about[kind].file as file:
                        return self._world.send_file(kind, about, about[kind].filename, file.read())
                case "getFile":
                    return self._world.file(str(about["file_id"]))
                case "setWebhook" | "deleteWebhook":
                    self._webhook = Webhook(url=about.get("url", ""), secret=about.get("secret_token", ""))
                    asyncio.get_running_loop().call_soon(self._bring)
                    return True
                case "getWebhookInfo":
                    about_it: dict[str, Any] = {"url": self._webhook.url, "has_custom_certificate": False}
                    return {**about_it, "pending_update_count": len(self._world.updates), **self.undelivered}
                case "sendChatAction":
                    return self._world.show_typing(about)
                case "setMessageReaction":
                    return self._world.react(about)
                case "setMyCommands":
                    self._world.menu = [each["command"] for each in about["commands"]]
                    return True
                case "answerCallbackQuery":
                    return self._world.answer_query(about)
        raise Refusal(404, "Not Found: method not found")

    async def _answer_file(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        fault = self._note("file", {"name": name})
        if fault.status or request.match_info["token"] != TOKEN:
            return web.Response(status=fault.status or 401)
        await asyncio.sleep(fault.delay_s)
        return web.Response(body=fault.page or self._world.files[name])

    def _bring(self) -> None:
        """Each update to the webhook, side by side, until it is confirmed."""
        if not self._webhook.url:
            return
        with self._lock:
            for update in self._world.updates:
                number = update["update_id"]
                if number not in self._bringing:
                    self._bringing[number] = asyncio.create_task(self._bring_one(update))

    async def _bring_one(self, update: dict[str, Any]) -> None:
        async with aiohttp.ClientSession() as session:
            while self._webhook.url:
                headers = {"X-Telegram-Bot-Api-Secret-Token": self._webhook.secret}
                with suppress(aiohttp.ClientError):
                    async with session.post(self._webhook.url, json=update, headers=headers) as response:
                        if response.status == 200:
                            break
                await asyncio.sleep(0.2)
        with self._changed:
            if self._webhook.url:
                self._world.updates.remove(update)
            del self._bringing[update["update_id"]]
            self._changed.notify_all()

    async def _poll(self, about: dict[str, Any]) -> list[dict[str, Any]]:
        if self._webhook.url:
            raise Refusal(409, "Conflict: can't use getUpdates method while webhook is active")
        if self._poller is not None and not self._poller.done():
            gone = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
            self._poller.set_exception(Refusal(409, gone))
        deadline = time.monotonic() + min(int(about.get("timeout", 0)), 50)
        with self._changed:
            self._world.confirm(int(about.get("offset", 0)))
            self._changed.notify_all()
        while not (waiting := self._waiting(about)) and (left_s := deadline - time.monotonic()) > 0:
            mine = self._poller = asyncio.get_running_loop().create_future()
            try:
                await asyncio.wait_for(mine, left_s)
            except TimeoutError:
                break
            finally:
                if self._poller is mine:
                    self._poller = None
        for each in waiting:
            self.fetched.setdefault(each["update_id"], time.monotonic())
        return waiting

    def _waiting(self, about: dict[str, Any]) -> list[dict[str, Any]]:
        kinds = about.get("allowed_updates") or []
        with self._lock:
            wanted = [
                each
                for each in self._world.updates
                if not kinds or set(each) & {"update_id", *kinds} != {"update_id"}
            ]
        return wanted[: min(int(about.get("limit", 100)), 100)]


def _decoded(name: str, value: str) -> Any:
    """Structured parameters come as JSON."""
    structured = {"allowed_updates", "commands", "reply_markup", "reply_parameters", "reaction"}
    return json.loads(value) if name in structured else value


def _refuse(fault: Fault, token: str) -> None:
    if token != TOKEN:
        raise Refusal(401, "Unauthorized")
    if fault.status:
        more = {"retry_after": fault.retry_after} if fault.retry_after else {}
        raise Refusal(fault.status, fault.description, **more)


def _refused(refusal: Refusal) -> web.Response:
    answer: dict[str, Any] = {"ok": False, "error_code": refusal.status, "description": refusal.description}
    if refusal.parameters:
        answer["parameters"] = refusal.parameters
    return web.json_response(answer, status=refusal.status)
