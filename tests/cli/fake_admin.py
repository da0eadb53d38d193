"""Fake of the daemon's admin socket: fixed answers, and a list of the requests."""

from __future__ import annotations

import json
import re
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Self

_CLOSE_S = 10.0  # a client that never leaves must not hold up the tests after it
RUNS = "POST /v1/runs"
EVENTS = "GET /v1/runs/{id}/events"
_OF_RUN = re.compile("/v1/runs/[^/]+/events")
NOBODY = 2**22 + 1  # the number of no process: the kernel counts up to 2**22


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    method: str
    path: str
    body: Any
    headers: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    body: Any = None
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Raw bytes, written as they come; `cut` ends the connection without the end of the body."""

    parts: Iterable[bytes]
    cut: bool = False


Respond = Callable[[Asked], "Answer | Stream"]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeAdmin

    def _handle(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        raw = self.rfile.read(length)
        asked = Asked(
            method=self.command, path=self.path, body=json.loads(raw) if raw else None, headers=dict(self.headers)
        )
        self.server.asked.append(asked)
        self.close_connection = True
        match self.server.answer(asked):
            case Answer() as answer:
                self._send(answer)
            case Stream() as stream:
                self._stream(stream)

    do_GET = do_POST = do_DELETE = _handle  # noqa: N815 - names of the base class

    def _send(self, answer: Answer) -> None:
        raw = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _stream(self, stream: Stream) -> None:
        try:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in stream.parts:
                self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                self.wfile.flush()
            if not stream.cut:
                self.wfile.write(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            self.server.left.set()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Nothing: a test's output is its own."""


class FakeAdmin(socketserver.ThreadingUnixStreamServer):
    """Serves in a thread between `with`; `routes` maps "METHOD /path" (without the query) to an answer."""

    def __init__(self, socket_path: Path) -> None:
        socket_path.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(str(socket_path), _Handler)
        self.asked: list[Asked] = []
        self.routes: dict[str, Answer | Stream | Respond] = {
            "GET /info": Answer(body={"pid": NOBODY, "version": "0", "model": "offline"}),
            "GET /api/sessions": Answer(body={"sessions": []}),
            RUNS: accepted(),
        }
        self.left = threading.Event()  # a client went away in the middle of a stream
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._handlers: list[threading.Thread] = []

    def answer(self, asked: Asked) -> Answer | Stream:
        path = asked.path.partition("?")[0]
        route = self.routes.get(EVENTS if _OF_RUN.fullmatch(path) else f"{asked.method} {path}")
        if route is None:
            message = f"There is nothing at {asked.path}."
            return Answer(
                status=404, body={"error": {"message": message, "type": "invalid_request_error", "code": "not_found"}}
            )
        return route if isinstance(route, Answer | Stream) else route(asked)

    def process_request(self, request: Any, client_address: Any) -> None:
        """As the base class, whose own list of threads is joined without a limit."""
        arguments = (request, client_address)
        handler = threading.Thread(target=self.process_request_thread, args=arguments, daemon=True)
        self._handlers.append(handler)
        handler.start()

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients of these tests leave when they like."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for the requests that run, but not longer than `_CLOSE_S`."""
        if self._thread.is_alive():
            self.shutdown()
            self._thread.join(_CLOSE_S)
        self.server_close()
        deadline = time.monotonic() + _CLOSE_S
        for handler in self._handlers:
            handler.join(max(0.0, deadline - time.monotonic()))
        Path(str(self.server_address)).unlink(missing_ok=True)


def sse(data: Any, event: str = "", place: str = "") -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    lines = [f"{name}: {value}\n" for name, value in (("id", place), ("event", event)) if value]
    return "".join([*lines, f"data: {text}\n\n"]).encode()


def accepted(session: str = "s1", turn: str = "t1", notice: str = "") -> Answer:
    """The message is on disk."""
    body = {"run_id": f"run_{turn}", "turn_id": turn, "session_id": session, "handling": "started"}
    return Answer(status=202, body=body | ({"notice": notice} if notice else {}))


def named(event: str, **fields: Any) -> bytes:
    """An event of the run."""
    return sse({"run_id": "run_t1", "session_id": "s1", **fields}, event=event)


def delta(text: str) -> bytes:
    return named("message.delta", text=text)


def completed(output: str, finish: str = "stop") -> bytes:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    return named("run.completed", output=output, model="offline", finish_reason=finish, usage=usage)


def completion(*texts: str) -> list[bytes]:
    """A whole answer as the API streams it."""
    began = named("run.started", attempt=1)
    return [began, *map(delta, texts), b": ping\n\n", completed("".join(texts))]


def listing(*sessions: dict[str, Any]) -> Respond:
    """All of them on the first page, and none on the next."""
    return lambda asked: Answer(body={"sessions": [] if "after=" in asked.path else list(sessions)})


def tool_began(name: str = "terminal", summary: str = "echo hi", call: str = "c1") -> bytes:
    return named("tool.started", call_id=call, name=name, summary=summary)


def tool_ended(name: str = "terminal", outcome: str = "ok", call: str = "c1", took_s: float = 0.25) -> bytes:
    return named("tool.completed", call_id=call, name=name, summary="echo hi", outcome=outcome, took_s=took_s)


def approval(
    question: str = "rm -rf build\nit deletes", choices: tuple[str, ...] = ("once", "session", "always", "deny")
) -> bytes:
    return named("approval.request", call_id="c1", name="terminal", question=question, choices=choices)


def question(text: str = "Which?", choices: tuple[str, ...] = ("red", "blue")) -> bytes:
    return named("question", call_id="c2", name="clarify", question=text, choices=list(choices))
