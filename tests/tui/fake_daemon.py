"""Daemon for the terminal interface, in memory: a test answers requests, emits events and cuts connections."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from hermes.client.api_error import ApiError, ConnectionFailedError
from hermes.domain.ids import RUN, SessionId, TurnId, TurnToken
from hermes.domain.text.server_event import RawEvent

SESSION = "s1"
_CUT = None


class FakeDaemon:
    def __init__(self) -> None:
        self.down = False
        self.asked: list[tuple[str, str, Any]] = []  # method, path, body
        self.keys: list[str] = []  # of the messages that arrived
        self.resumed_from: list[str] = []
        self.messages: list[dict[str, Any]] = []
        self.session: dict[str, Any] | None = None
        self.processes: list[dict[str, Any]] = []
        self.agents: list[dict[str, Any]] = []
        self.sessions: list[dict[str, Any]] = []
        self.routes: dict[str, Callable[[Any], Any]] = {}
        self._queues: dict[str, list[asyncio.Queue[RawEvent | None]]] = defaultdict(list)
        self._history: dict[str, list[RawEvent]] = defaultdict(list)
        self._turns = 0
        self.commands = [{"name": "status", "aliases": [], "help": "Show the state", "choices": []}]
        self.hold_answers = False  # an accepted message gets no response

    # ------------------------------------------------------------ for the interface

    async def call(self, method: str, path: str, **options: Any) -> Any:
        body = options.get("json")
        if self.down:
            raise ConnectionFailedError("down")
        self.asked.append((method, path, body))
        if (route := self.routes.get(f"{method} {path}")) is not None:
            return route(body)
        if path == "/v1/runs":
            return self._accept(body, options["headers"]["Idempotency-Key"])
        return self._read(path)

    def _accept(self, body: Any, key: str) -> Any:
        self.keys.append(key)
        if self.hold_answers:
            raise ConnectionFailedError("cut")
        self._turns = len(set(self.keys))
        self.session = self.session or session_json()
        return {"turn_id": f"t{self._turns}", "session_id": body["session_id"], "handling": "started"}

    def _read(self, path: str) -> Any:
        if path == "/info":
            return {"model": "scripted", "model_health": {"context_window": 1000}}
        if path == "/api/commands":
            return {"commands": self.commands}
        if path == "/api/sessions":
            return {"sessions": self.sessions, "previews": {}}
        if path == "/api/search":
            return {"hits": []}
        if path.endswith(("/workdir", "/stop", "/answer")):
            return {}
        if self.session is None:
            raise ApiError("there is no such session", status=404, code="session_not_found")
        if path.endswith("/messages"):
            return {"messages": self.messages}
        if path.endswith("/agents"):
            return {"agents": self.agents}
        if path.endswith("/processes"):
            return {"processes": self.processes}
        return {"session": self.session, "preferences": {}}

    async def events(self, path: str, query: Mapping[str, str], last_id: str = "") -> AsyncIterator[RawEvent]:
        if self.down:
            raise ConnectionFailedError("down")
        self.resumed_from.append(last_id)
        queue: asyncio.Queue[RawEvent | None] = asyncio.Queue()
        self._queues[path].append(queue)
        if path == "/api/events":
            yield RawEvent(id="1", name="stream.opened", data="{}")
        for event in self._history[path]:
            if not last_id or (event.id and int(event.id) > int(last_id)):
                yield event
        while (event_or_cut := await queue.get()) is not _CUT:
            yield event_or_cut
        raise ConnectionFailedError("cut")

    # ------------------------------------------------------------ for tests

    def emit(self, turn: str, name: str, /, *, stored: str = "", **fields: Any) -> None:
        """Emit an event of a run."""
        self.publish(run_path(turn), name, stored=stored, **fields)

    def publish(self, path: str, name: str, /, *, stored: str = "", **fields: Any) -> None:
        event = RawEvent(id=stored, name=name, data=json.dumps(fields))
        if stored and path != "/api/events":
            self._history[path].append(event)
        for queue in self._queues[path]:
            queue.put_nowait(event)

    def cut(self) -> None:
        """Cut all connections; new ones are refused until `down` is False."""
        self.down = True
        for queues in self._queues.values():
            for queue in queues:
                queue.put_nowait(_CUT)
        self._queues.clear()

    def is_followed(self, turn: str) -> bool:
        return bool(self._queues[run_path(turn)])


def run_path(turn: str, session: str = SESSION) -> str:
    return f"/v1/runs/{TurnToken(session=SessionId(session), turn=TurnId(turn)).text(RUN)}/events"


def session_json(**fields: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 90, "completion_tokens": 10, "cost_usd": 0.25}
    return {"id": SESSION, "phase": "idle", "title": "", "usage": usage, "context_tokens": 250, **fields}
