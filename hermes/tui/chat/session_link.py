"""Live view of one session: follows its events, across restarts of the daemon, and sends what the person types.

A message has an idempotency key from the start, so that it is sent again after a lost connection and stored once.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from hermes.domain.errors import HermesError
from hermes.domain.ids import RUN, SessionId, TurnId, TurnToken
from hermes.domain.values import replace
from hermes.tui.chat.figures import Figures, LinkState, Reply, with_session
from hermes.tui.chat.picture_files import PictureError, input_of
from hermes.tui.view_model import (
    ChatView,
    Delivery,
    OpenPrompt,
    PendingMessage,
    reduce,
    with_earlier,
    with_message,
    with_notice,
    with_pending,
    with_result,
    with_transcript,
    without_pending,
)

if TYPE_CHECKING:
    from hermes.tui.chat.daemon import ChatDaemon

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 2.0
_RETRY_S: Final = 1.0
_BUSY: Final = (429, 503)  # the daemon stops, or has no room for now
_EVENTS: Final = "session,process,run.accepted,run.started"  # a turn's own events come from its run
_ENDS: Final = ("run.completed", "run.failed", "run.cancelled")
_MESSAGES: Final = {"/steer": Delivery.STEERING, "/queue": Delivery.QUEUED}  # commands that carry a message
_PAGE: Final = 100  # messages of a session that are loaded first
_RECENT: Final = 20
_HANDLED: Final = {
    "queued": Delivery.QUEUED,
    "joined": Delivery.QUEUED,
    "steering": Delivery.STEERING,
    "interrupting": Delivery.INTERRUPTING,
}


class SessionLink:
    def __init__(
        self, daemon: ChatDaemon, session: str, *, workdir: str | None = None, own_daemon: bool = False
    ) -> None:
        """`own_daemon`: it continues an interrupted turn only once the session is used."""
        self.view = ChatView(session=session)
        self.connection = LinkState.CONNECTING
        self.figures = Figures()
        self.problem = ""  # why the daemon cannot be used
        self.refused = ""  # text of a message that the daemon refused
        self.workdir = workdir
        self._daemon = daemon
        self._own_daemon = own_daemon
        self._changed: Callable[[], None] = lambda: None
        self._online = asyncio.Event()
        self._outgoing: asyncio.Queue[PendingMessage] = asyncio.Queue()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._position = ""  # id of the last stored event
        self._workdir_sent_to = ""
        self._unmatched: list[Mapping[str, Any]] = []  # first results, of calls that are not loaded

    def on_change(self, changed: Callable[[], None]) -> None:
        """Call this after every change of `view`, `connection` or `figures`."""
        self._changed = changed

    # ------------------------------------------------------------ start and end

    def start(self) -> None:
        self._spawn("sender", self._send_messages())
        self._spawn("feed", self._stay_connected())

    async def close(self) -> None:
        for task in [*self._tasks.values()]:
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def open(self, session: str) -> None:
        """Show another session."""
        self._leave()
        self._position = ""
        self._update(ChatView(session=session, pending=self.view.pending))
        self.figures = Figures(context_window=self.figures.context_window, model=self.figures.model)
        self._spawn("feed", self._stay_connected())

    def _continue_as(self, session: str) -> None:
        """Follow the session under its new id; what is shown stays."""
        if session in ("", self.view.session):
            return
        self._update(replace(self.view, session=session))
        if asyncio.current_task() is not self._tasks.get("feed"):  # it goes on by itself
            self._spawn("feed", self._stay_connected())

    def _leave(self) -> None:
        for name in [name for name in self._tasks if name.startswith(RUN)]:
            self._tasks.pop(name).cancel()

    def _spawn(self, name: str, work: Any) -> None:
        if (old := self._tasks.get(name)) is not None and old is not asyncio.current_task():
            old.cancel()
        self._tasks[name] = asyncio.create_task(work, name=name)

    def _update(self, view: ChatView) -> None:
        if view is not self.view:
            self.view = view
            self._changed()

    # ------------------------------------------------------------ connection

    async def _stay_connected(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            session = self.view.session
            try:
                await self._follow_session()
                pause_s = _FIRST_PAUSE_S
            except HermesError as error:
                self._lost(str(error))
            else:
                if self.view.session != session:
                    continue
                self._lost("")
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _lost(self, problem: str) -> None:
        self._online.clear()
        self.problem = problem
        if self.connection is LinkState.ONLINE:
            self.connection = LinkState.AWAY
        self._keep_pending()
        self._changed()

    def _keep_pending(self) -> None:
        kept = (replace(each, state=Delivery.KEPT) if not each.turn else each for each in self.view.pending)
        self.view = replace(self.view, pending=tuple(kept))

    async def _follow_session(self) -> None:
        session = self.view.session
        query = {"session_id": session, "type": _EVENTS}
        first = not self._position
        async for raw in self._daemon.events("/api/events", query, last_id=self._position):
            self._position = raw.id or self._position
            if raw.name in ("stream.opened", "gap"):
                await self._opened(load=first or raw.name == "gap" or self.connection is LinkState.AWAY)
                first = False
            elif raw.name != "daemon.stopping":
                await self._take(raw.name, json.loads(raw.data))
            if self.view.session != session:  # it continues under another id
                return

    async def _opened(self, *, load: bool) -> None:
        """`load`: show what is stored, as a daemon that was killed continues a turn by another attempt."""
        if load:
            await self._load()
        await self._refresh()
        if self._own_daemon and any(name.startswith(RUN) for name in self._tasks):
            with suppress(HermesError):  # it is refused, as the session is not suspended, but activates it
                await self._post("/sessions", "resume")
        self.connection, self.problem = LinkState.ONLINE, ""
        self._online.set()
        self._changed()

    async def _load(self) -> None:
        """Load the stored messages, and follow the turn that runs."""
        try:
            session = (await self._get(""))["session"]
            page = await self._get("/messages", limit=_PAGE)
        except HermesError as error:
            if _status(error) != 404:
                raise
            return  # its first message creates it
        self._leave()
        messages = page["messages"]
        running = str(session.get("running_turn") or "")
        begun = messages[0]["seq"] if messages and not page.get("has_more") else None  # the task of a subagent
        stored = [each for each in messages if each.get("turn") != running or _is_said(each) or each["seq"] == begun]
        self._unmatched = [*takewhile(lambda each: each["role"] == "tool", messages)]
        fresh = replace(self.view, session=session["id"], blocks=(), earliest=_earliest(page))
        view = with_transcript(fresh, stored)
        over = frozenset(str(each.get("turn")) for each in messages) - {running}
        pending = (each for each in view.pending if each.turn == "" or view.block(f"{each.turn}.user") is None)
        self._update(replace(view, turn=running, ended=view.ended | over, pending=tuple(pending)))
        if running:
            self._follow(running)

    async def load_earlier(self) -> None:
        """Load the stored messages before the first one here."""
        before = self.view.earliest
        if before is None:
            return
        try:
            page = await self._get("/messages", limit=_PAGE, before=before)
        except HermesError as error:
            self.notice(f"Earlier messages could not be loaded: {error}")
            return
        if self.view.earliest == before:  # else another session was opened
            messages = [*page["messages"], *self._unmatched]
            self._unmatched = [*takewhile(lambda each: each["role"] == "tool", messages)]
            self._update(with_earlier(self.view, messages, _earliest(page)))

    async def _refresh(self) -> None:
        """Update the figures."""
        info = await self._daemon.call("GET", "/info")
        figures = replace(
            self.figures,
            model=str(info.get("model") or ""),
            context_window=int((info.get("model_health") or {}).get("context_window") or 0),
        )
        with suppress(HermesError):  # there is no such session yet
            found = await self._get("")
            figures = with_session(figures, found["session"], found.get("preferences") or {})
            listed = (await self._get("/processes"))["processes"]
            agents = (await self._get("/agents"))["agents"]
            figures = replace(figures, processes=tuple(listed), agents=tuple(agents))
        self.figures = figures
        self._changed()

    async def refresh(self) -> None:
        """Update the figures if a daemon runs."""
        if self._online.is_set():
            with suppress(HermesError):
                await self._refresh()

    async def _get(self, rest: str, **query: object) -> Any:
        path = f"/api/sessions/{quote(self.view.session, safe='')}{rest}"
        return await self._daemon.call("GET", path, params={name: str(value) for name, value in query.items()})

    # ------------------------------------------------------------ events

    async def _take(self, name: str, fields: Mapping[str, Any]) -> None:
        turn = str(fields.get("turn_id") or "")
        if name.startswith("run."):
            if turn not in self.view.ended:
                self._update(reduce(self.view, name, fields))
            if name == "run.started" and turn not in self.view.ended:
                self._follow(turn)
        elif name == "session.continued":
            compressed = fields.get("reason") == "compression"
            if not compressed:
                self._update(with_notice(self.view, f"A new session continues: {fields.get('reason') or 'reset'}."))
            self._continue_as(str(fields["successor"]))
        else:
            self._spawn("refresh", self.refresh())

    def _follow(self, turn: str) -> None:
        run = TurnToken(session=SessionId(self.view.session), turn=TurnId(turn)).text(RUN)
        if run not in self._tasks:
            self._spawn(run, self._follow_run(run, turn))

    async def _follow_run(self, run: str, turn: str) -> None:
        """Show a turn to its end, also across restarts."""
        last_id = ""
        try:
            while turn not in self.view.ended:
                with suppress(HermesError):  # lost, or over: the next round tells
                    async for raw in self._daemon.events(f"/v1/runs/{run}/events", {}, last_id=last_id):
                        last_id = raw.id or last_id
                        await self._take_of_run(raw.name, {"turn_id": turn, **json.loads(raw.data)})
                        if turn in self.view.ended:
                            break
                if turn not in self.view.ended:
                    await asyncio.sleep(_FIRST_PAUSE_S)
                    await self._online.wait()
        finally:
            if self._tasks.get(run) is asyncio.current_task():  # else it is followed again
                self._tasks.pop(run)
        await self.refresh()

    async def _take_of_run(self, name: str, fields: Mapping[str, Any]) -> None:
        if name == "session":
            self._continue_as(str(fields["session_id"]))
            return
        self._update(reduce(self.view, name, fields))
        turn = str(fields["turn_id"])
        if name == "run.started" and self.view.block(f"{turn}.user") is None:
            self._spawn("message", self._load_message(turn))
        if name == "tool.completed" or name in _ENDS:
            self._spawn("results", self._load_results())

    async def _load_message(self, turn: str) -> None:
        """Show the message of a turn that was started elsewhere."""
        with suppress(HermesError):
            for each in (await self._get("/messages", limit=_RECENT))["messages"]:
                if each["role"] == "user" and each.get("turn") == turn and not each.get("note"):
                    before = [block for block in self.view.blocks if not block.key.startswith(f"{turn}.")]
                    after = [block for block in self.view.blocks if block.key.startswith(f"{turn}.")]
                    view = with_transcript(replace(self.view, blocks=tuple(before)), [each])
                    self._update(replace(view, blocks=(*view.blocks, *after)))
                    return

    async def _load_results(self) -> None:
        """Show the results of tool calls, as the model reads them."""
        with suppress(HermesError):
            messages = (await self._get("/messages", limit=_RECENT))["messages"]
            view = self.view
            for each in messages:
                view = with_result(view, each) if each["role"] == "tool" else view
            self._update(view)

    # ------------------------------------------------------------ messages

    def send(self, text: str, pictures: tuple[Path, ...] = ()) -> None:
        """Send a message, now or when a daemon is back."""
        state = Delivery.SENDING if self._online.is_set() else Delivery.KEPT
        paths = tuple(map(str, pictures))
        message = PendingMessage(key=secrets.token_hex(16), text=text, state=state, pictures=paths)
        self._update(with_pending(self.view, message))
        self._outgoing.put_nowait(message)

    async def _send_messages(self) -> None:
        while True:
            await self._send(await self._outgoing.get())

    async def _send(self, message: PendingMessage) -> None:
        while True:
            await self._online.wait()
            self._update(with_pending(self.view, replace(message, state=Delivery.SENDING)))
            try:
                await self._send_workdir()
                pictures = tuple(map(Path, message.pictures))
                given = await asyncio.to_thread(input_of, message.text, pictures)
                body = {"input": given, "session_id": self.view.session}
                headers = {"Idempotency-Key": message.key}
                stored = await self._daemon.call("POST", "/v1/runs", json=body, headers=headers)
            except HermesError as error:
                if isinstance(error, PictureError) or _status(error) not in (None, *_BUSY):
                    self._refuse(message, str(error))
                    return
                self._update(with_pending(self.view, replace(message, state=Delivery.KEPT)))
                await asyncio.sleep(_RETRY_S)
                continue
            self._stored(message, stored)
            return

    async def _send_workdir(self) -> None:
        """Set the working directory before the first message of a session, whose prompt names it."""
        session = self.view.session
        if self.workdir is None or self._workdir_sent_to == session:
            return
        path = f"/sessions/{quote(session, safe='')}/workdir"
        await self._daemon.call("POST", path, json={"path": self.workdir})
        self._workdir_sent_to = session

    def _refuse(self, message: PendingMessage, problem: str) -> None:
        self.refused = message.text
        self._update(with_notice(without_pending(self.view, message.key), f"Not sent: {problem}"))

    def _stored(self, message: PendingMessage, body: Mapping[str, Any]) -> None:
        turn, handling = str(body["turn_id"]), str(body.get("handling") or "")
        view = self.view
        if handling == "answer":
            view = with_message(without_pending(view, message.key), message.key, message.text, message.pictures)
        elif view.block(f"{turn}.user") is not None:  # its events came first
            view = without_pending(view, message.key)
        elif handling in _HANDLED:
            view = with_pending(view, replace(message, state=_HANDLED[handling], turn=turn))
        else:
            view = with_message(without_pending(view, message.key), turn, message.text, message.pictures)
            view = replace(view, turn=turn)
        if notice := str(body.get("notice") or ""):
            view = with_notice(view, notice)
        self._update(view)
        self._continue_as(str(body.get("session_id") or ""))
        if handling == "started" and turn not in self.view.ended:
            self._follow(turn)

    # ------------------------------------------------------------ actions

    async def stop_turn(self) -> None:
        """Stop the turn that runs."""
        if turn := self.view.turn:
            with suppress(HermesError):  # it was over
                await self._post("/sessions", "stop", reason="stopped in the terminal", turn_id=turn)

    async def answer(self, prompt: OpenPrompt, answer: str) -> None:
        """Answer an approval or a question. Raises HermesError."""
        await self._post("/api/sessions", "answer", answer=answer, call_id=prompt.call)

    async def command(self, text: str) -> Reply:
        """Run a slash command of the daemon. Raises HermesError."""
        try:
            found = await self._post("/api/sessions", "commands", text=text)
        except HermesError as error:
            if _status(error) != 404:
                raise
            found = await self._daemon.call("POST", "/api/commands", json={"text": text})  # no session yet
        session, turn = str(found.get("session_id") or ""), str(found.get("turn_id") or "")
        if session not in ("", self.view.session):
            self.open(session)
        elif turn and not self._waits(turn, text):
            self._follow(turn)
        self._spawn("refresh", self.refresh())
        return Reply(
            ok=bool(found.get("ok", True)),
            text=str(found.get("text") or ""),
            choices=tuple(map(str, found.get("choices") or ())),
        )

    def _waits(self, turn: str, command: str) -> bool:
        """Show the message of `/steer` or `/queue` while another turn runs. Events say when it is taken."""
        word, _, message = command.partition(" ")
        begun = turn in self.view.ended or self.view.block(f"{turn}.user") is not None
        if not message or begun or word.lower() not in _MESSAGES:
            return False
        state = _MESSAGES[word.lower()]
        self._update(with_pending(self.view, PendingMessage(key=turn, text=message, state=state, turn=turn)))
        return self.view.turn not in ("", turn)

    async def _post(self, root: str, verb: str, **body: str) -> Any:
        path = f"{root}/{quote(self.view.session, safe='')}/{verb}"
        return await self._daemon.call("POST", path, json=body)

    def notice(self, text: str) -> None:
        self._update(with_notice(self.view, text))


def _is_said(message: Mapping[str, Any]) -> bool:
    return message["role"] == "user" and not message.get("note")


def _earliest(page: Mapping[str, Any]) -> int | None:
    """Return the position of the first message of a page; None if none is before it."""
    messages = page["messages"]
    return int(messages[0]["seq"]) if messages and page.get("has_more") else None


def _status(error: HermesError) -> int | None:
    """Return the HTTP status of a refusal; None for a lost connection."""
    status = getattr(error, "status", None)
    return status if isinstance(status, int) else None
