"""A fake Slack on loopback, in a thread of its own: it outlives a daemon that a test kills.

Faithful where it matters: an envelope that is not acknowledged comes again, after a while or on the next connection,
with another envelope id and the same event; a mention is reported as `message` and as `app_mention`; messages have
timestamps, threads and metadata. Faults are queued with `fail`: each plays once, for the next call of that method.

    with SlackServer() as server:
        server.say("D1", "UANN", "hello")
        server.until(lambda: server.replies("D1") == ["hello yourself"])
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import itertools
import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from aiohttp import WSMsgType, web

from hermes.adapters.slack.manifest import SCOPES
from tests.support.slack_files import LOGIN_PAGE, Kept, Shelf
from tests.support.slack_state import BOT_ID, BOT_NAME, BOT_USER, TEAM, Envelope, Refusal, Shown, SlackState
from tests.support.threaded_server import ThreadedServer, listening

T = TypeVar("T")

BOT_TOKEN = "xoxb-test-token-of-the-fake-slack"
APP_TOKEN = "xapp-test-token-of-the-fake-slack"
SIGNING_SECRET = "signing-secret-of-the-fake-slack"
DEADLINE_S = 40.0
_READ = {"im": "im:read", "mpim": "mpim:read", "private_channel": "groups:read", "public_channel": "channels:read"}
PAGE = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong with a call; the effect takes place only when it is said how its answer fares."""

    status: int = 0
    page: bytes = b""
    error: str = ""  # as Slack says it, with status 200
    retry_after: int | None = None
    lost: bool = False  # the effect takes place, and the connection closes without an answer
    delay_s: float = 0.0  # before an answer that is otherwise good
    held: threading.Event | None = None  # the same until it is set

    @staticmethod
    def flood(retry_after: int) -> Fault:
        return Fault(status=429, error="ratelimited", retry_after=retry_after)

    @staticmethod
    def bad_gateway() -> Fault:
        return Fault(status=502, page=PAGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    method: str
    about: dict[str, Any]
    at: float


def signed(body: bytes, *, secret: str = SIGNING_SECRET, at: float | None = None) -> dict[str, str]:
    """The headers of a request that Slack would send."""
    moment = str(int(time.time() if at is None else at))
    digest = hmac.new(secret.encode(), f"v0:{moment}:".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": moment, "X-Slack-Signature": f"v0={digest}"}


class SlackServer(ThreadedServer):
    """Every method here can be called from any thread."""

    def __init__(self, *, port: int = 0, again_after_s: float = 3.0) -> None:
        super().__init__("fake slack")
        self.base_url = ""
        self.calls: list[Call] = []
        self.tokens = {BOT_TOKEN: TEAM}
        self.app_tokens = {APP_TOKEN}
        self.deaf = False  # pings are not answered any more
        self.welcome = True  # hello is said on new connections
        self._again_after_s = again_after_s
        self._world = SlackState()
        self._shelf = Shelf()
        self.scopes = {*SCOPES, "connections:write"}  # of the bot's token, and of the app's
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._faults: dict[str, deque[Fault]] = defaultdict(deque)
        self._port = port
        self._numbers = itertools.count(1)
        self._links: list[web.WebSocketResponse] = []
        self._wakers: set[asyncio.Event] = set()

    # ------------------------------------------------------------ what people do

    def say(self, channel: str, user: str, text: str, **more: Any) -> str:
        """A person writes; `thread` is a timestamp. D… is a direct message. Returns the message's timestamp."""
        return self._do(lambda: self._world.say(channel, user, text, **more)).ts

    def share(
        self,
        channel: str,
        user: str,
        *files: tuple[str, bytes, str],
        text: str = "",
        bare: bool = False,
        address: str = "",
        **more: Any,
    ) -> str:
        """A person sends files, each a name, content and media type; `bare`: the message has their ids only."""

        def share() -> Shown:
            kept = [self._shelf.add(TEAM, *each) for each in files]
            for each in kept:
                each.address = address
            told = [{"id": each.id} if bare else each.as_json(self._files_url) for each in kept]
            return self._world.say(channel, user, text, subtype="file_share", files=told, **more)

        return self._do(share).ts

    def rewrite(self, channel: str, ts: str, text: str) -> None:
        """A person edits a message."""
        self._do(lambda: self._world.rewrite(channel, ts, text))

    def press(self, channel: str, ts: str, label: str, user: str) -> None:
        self._do(lambda: self._world.press(channel, ts, label, user))

    def slash(self, channel: str, user: str, text: str, **more: Any) -> None:
        self._do(lambda: self._world.slash(channel, user, text, **{"respond_at": self._respond_url, **more}))

    def press_alone(self, label: str, user: str) -> None:
        """On the last message that the person was shown alone in answer to a command."""
        self._do(lambda: self._world.press_alone(label, user, self._respond_url))

    def delete(self, channel: str, ts: str) -> None:
        self._do(lambda: self._world.delete(channel, ts))

    def give_up(self) -> None:
        """Slack does not try any more to bring what nobody has acknowledged."""
        self._do(self._world.waiting.clear)

    def post_event(self, event: dict[str, Any], team: str = TEAM) -> None:
        """Any event, as JSON."""
        self._do(lambda: self._world.post_event(team, event))

    def repeat(self, number: int = -1) -> None:
        """Slack delivers an event once more that was acknowledged before."""

        def again() -> None:
            old = self._world.acknowledged[number]
            self._world.waiting.append(Envelope(kind=old.kind, payload=old.payload, deliveries=old.deliveries))

        self._do(again)

    def change(self, change: Callable[[SlackState], object]) -> None:
        """Anything else that happens on Slack."""
        self._do(lambda: change(self._world))

    # ------------------------------------------------------------ what goes wrong

    def fail(self, method: str, *faults: Fault) -> None:
        """For the next calls of that method, such as `chat.postMessage`."""
        with self._lock:
            self._faults[method].extend(faults)

    def disconnect(self, reason: str, *, close: bool = True) -> None:
        """On all connections there are; `close`: at once after that."""
        self._in_loop(lambda: self._disconnect(reason, close=close))

    def cut(self) -> None:
        """All connections break."""
        self._in_loop(self._cut)

    # ------------------------------------------------------------ what is seen

    def history(self, channel: str) -> list[Shown]:
        """What a person sees in the channel, the oldest first."""
        with self._lock:
            return [each for each in self._world.messages if each.channel == channel and not each.deleted]

    def replies(self, channel: str) -> list[str]:
        """What the bot has said there, as it reads now."""
        return [each.text for each in self.history(channel) if each.from_bot]

    def files(self, channel: str) -> list[Kept]:
        """That the bot has shared there."""
        shown = [each["id"] for message in self.history(channel) if message.from_bot for each in message.files]
        with self._lock:
            return [self._shelf.kept[each] for each in shown]

    @property
    def asides(self) -> list[tuple[str, str, str]]:
        """What one person alone was shown: where, who, what."""
        with self._lock:
            return list(self._world.asides)

    def reactions(self, channel: str, ts: str) -> set[str]:
        with self._lock:
            return set(self._world.message(channel, ts).reactions)

    @property
    def violations(self) -> list[str]:
        with self._lock:
            return list(self._world.violations)

    @property
    def statuses(self) -> list[tuple[str, str, str]]:
        with self._lock:
            return list(self._world.statuses)

    @property
    def unacknowledged(self) -> int:
        with self._lock:
            return len(self._world.waiting)

    @property
    def links(self) -> int:
        """How many connections are open."""
        with self._lock:
            return len(self._links)

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
        for each in self._wakers:
            each.set()

    async def _serve(self) -> None:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/api/{method}", self._answer)
        app.router.add_get("/link", self._link)
        app.router.add_get("/files/{file}", self._give_file)
        app.router.add_post("/files/{file}", self._take_file)
        app.router.add_post("/respond/{name}", self._respond)
        async with listening(app, self._port) as address:
            self.base_url = f"{address}/api"
            await self._until_over()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        about: dict[str, Any] = dict(request.query)
        about |= await request.json() if request.content_type == "application/json" else dict(await request.post())
        fault = self._noted(method, about)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        try:
            if fault.page:
                return web.Response(status=fault.status, body=fault.page, content_type="text/html")
            with self._lock:
                result = self._perform(method, token, about, fault)
        except Refusal as refusal:
            headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
            shape = {"ok": False, "error": refusal.code, **refusal.more}
            return web.json_response(shape, status=fault.status or 200, headers=headers)
        finally:
            with self._changed:
                self._changed.notify_all()
        if fault.lost:
            assert request.transport is not None
            request.transport.abort()
        await asyncio.sleep(fault.delay_s)
        while fault.held is not None and not fault.held.is_set():  # noqa: ASYNC110 - of another thread's doing
            await asyncio.sleep(0.005)
        return web.json_response({"ok": True, **result}, headers={"X-OAuth-Scopes": ",".join(sorted(self.scopes))})

    def _perform(self, method: str, token: str, about: dict[str, Any], fault: Fault) -> dict[str, Any]:
        if fault.error:
            raise Refusal(fault.error)
        if method == "apps.connections.open":
            if token not in self.app_tokens:
                raise Refusal("invalid_auth")
            self._need("connections:write")
            return {"url": self.base_url.replace("http://", "ws://").replace("/api", "/link")}
        if token not in self.tokens:
            raise Refusal("invalid_auth")
        team = self.tokens[token]
        match method:
            case "auth.test":
                return {"team_id": team, "user_id": BOT_USER, "bot_id": BOT_ID, "user": BOT_NAME}
            case "chat.postMessage":
                self._need("chat:write")
                return self._world.post(team, about)
            case "chat.update":
                return self._world.update(team, about)
            case "conversations.history":
                self._need("im:history" if str(about.get("channel")).startswith("D") else "channels:history")
                return self._world.listed(team, about, thread="")
            case "conversations.replies":
                return self._world.listed(team, about, thread=str(about.get("ts")))
            case "reactions.add" | "reactions.remove":
                return self._world.react(team, about, add=method.endswith("add"))
            case "assistant.threads.setStatus":
                return self._world.set_status(about)
        return self._look_up(method, team, about)

    def _look_up(self, method: str, team: str, about: dict[str, Any]) -> dict[str, Any]:
        """What needs a scope of its own."""
        match method:
            case "chat.postEphemeral":
                self._need("chat:write")
                return self._world.tell_alone(team, about)
            case "files.info":
                self._need("files:read")
                return self._shelf.info(team, about, self._files_url)
            case "files.getUploadURLExternal":
                self._need("files:write")
                return self._shelf.upload_url(team, about, self._files_url)
            case "files.completeUploadExternal":
                return self._shelf.complete(team, about, self._world.show_files)
            case "users.conversations":
                for kind in str(about.get("types")).split(","):
                    self._need(_READ[kind])
                return self._world.member_of(team, about)
            case "conversations.info":
                self._need("channels:read")
                return self._world.described(team, about)
            case "users.info":
                self._need("users:read")
                return self._world.person(str(about.get("user")))
        raise Refusal("unknown_method")

    def _need(self, scope: str) -> None:
        if scope not in self.scopes:
            raise Refusal("missing_scope", needed=scope, provided="chat:write")

    # ------------------------------------------------------------ files

    @property
    def _files_url(self) -> str:
        return self.base_url.replace("/api", "/files")

    @property
    def _respond_url(self) -> str:
        return self.base_url.replace("/api", "/respond")

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        about = await request.json()
        fault = self._noted("respond", about)
        if fault.status and not fault.lost:
            headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
            return web.Response(status=fault.status, headers=headers)
        with self._changed:
            good = self._world.respond(request.match_info["name"], about)
            self._changed.notify_all()
        if fault.lost:
            assert request.transport is not None
            request.transport.abort()
        return web.Response(status=200 if good else 404)

    async def _give_file(self, request: web.Request) -> web.StreamResponse:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        fault = self._noted("download", {"token": token})
        with self._lock:
            kept = self._shelf.kept.get(request.match_info["file"])
        if fault.status or fault.page:
            return web.Response(status=fault.status or 200, body=fault.page, content_type="text/html")
        if kept is None or self.tokens.get(token) != kept.team:
            return web.Response(body=LOGIN_PAGE, content_type="text/html")
        return web.Response(body=kept.data, content_type=kept.media_type)

    async def _take_file(self, request: web.Request) -> web.StreamResponse:
        data = await request.read()
        fault = self._noted("upload", {"token": request.headers.get("Authorization", "")})
        if fault.status:
            return web.Response(status=fault.status)
        with self._lock:
            self._shelf.kept[request.match_info["file"]].data = data
        return web.Response(text=f"OK - {len(data)}")

    def _noted(self, method: str, about: dict[str, Any]) -> Fault:
        with self._lock:
            self.calls.append(Call(method=method, about=about, at=time.monotonic()))
            return self._faults[method].popleft() if self._faults[method] else Fault()

    # ------------------------------------------------------------ Socket Mode

    async def _link(self, request: web.Request) -> web.StreamResponse:
        link = web.WebSocketResponse(autoping=False, timeout=0.2)
        await link.prepare(request)
        if self.welcome:
            await link.send_json({"type": "hello", "num_connections": len(self._links) + 1})
        with self._changed:
            self._links.append(link)
            self._changed.notify_all()
        waker = asyncio.Event()
        self._wakers.add(waker)
        sender = asyncio.create_task(self._send(link, waker))
        try:
            async for frame in link:
                if frame.type is WSMsgType.PING and not self.deaf:
                    await link.pong(frame.data)
                elif frame.type is WSMsgType.TEXT:
                    self._acknowledge(json.loads(frame.data)["envelope_id"])
        finally:
            sender.cancel()
            self._wakers.discard(waker)
            with self._changed:
                self._links.remove(link)
                for each in self._world.waiting:
                    if each.on is link:
                        each.on = None
                self._changed.notify_all()
            self._wake()
        return link

    async def _send(self, link: web.WebSocketResponse, waker: asyncio.Event) -> None:
        while True:
            waker.clear()
            for envelope in self._due(link):
                retry = {"retry_attempt": envelope.deliveries - 1, "retry_reason": "timeout"}
                shape = {"envelope_id": envelope.id, "type": envelope.kind, "payload": envelope.payload, **retry}
                with suppress(ConnectionError):  # it goes to the next connection then
                    await link.send_json({**shape, "accepts_response_payload": envelope.kind != "events_api"})
            with suppress(TimeoutError):
                async with asyncio.timeout(self._again_after_s / 4):
                    await waker.wait()

    def _due(self, link: web.WebSocketResponse) -> list[Envelope]:
        """What is to be sent on this connection now: what is new, and what nobody acknowledged in time."""
        now = time.monotonic()
        with self._lock:
            if link not in self._links:  # it has just been closed
                return []
            due = [
                each for each in self._world.waiting if each.on is None or now - each.sent_at > self._again_after_s
            ]
            for each in due:
                each.first_at = each.first_at or now
                each.id = f"envelope-{next(self._numbers)}"
                each.deliveries += 1
                each.on = link
                each.sent_at = now
        return due

    def _acknowledge(self, name: str) -> None:
        with self._changed:
            for each in self._world.waiting:
                if each.id == name:
                    each.waited_s = time.monotonic() - each.first_at
                    self._world.waiting.remove(each)
                    self._world.acknowledged.append(each)
                    break
            self._changed.notify_all()

    def _disconnect(self, reason: str, *, close: bool) -> None:
        async def say(link: web.WebSocketResponse) -> None:
            await link.send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "fake"}})
            if close:
                await link.close()

        self._talking = [asyncio.ensure_future(say(link)) for link in self._links]

    def _cut(self) -> None:
        for link in self._links:
            transport = link._req.transport if link._req is not None else None
            if transport is not None:
                transport.abort()
