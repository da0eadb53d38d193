"""Talks to the daemon: HTTP over the admin socket, with nothing but the standard library.

Each request has its own connection. Whatever goes wrong comes out as a HermesError that reads well on a terminal.
"""

from __future__ import annotations

import http.client
import json
import queue
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, urlencode

from hermes.config.admin_token import read_token, token_file
from hermes.config.home import Home, holder
from hermes.domain.errors import HermesError, NotRunningError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

ANSWER_S = 5.0  # that a daemon in order never needs
_TIMEOUT_S = 30.0
_NO_SUCH_ADDRESS = ("not_found", "method_not_allowed")  # other than an address whose session is unknown


class AdminError(HermesError):
    """The daemon understood the request and refused it."""

    def __init__(self, message: str, *, status: int, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code

    @property
    def is_unknown_address(self) -> bool:
        """The daemon has no such ability; another version may."""
        return self.code in _NO_SUCH_ADDRESS


class SilentError(HermesError):
    """A daemon holds the socket and does not answer: it hangs, was stopped, or is far too busy."""


class LostError(NotRunningError):
    """The daemon went away in the middle of an answer."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout_s: float | None) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class AdminClient:
    def __init__(self, socket_path: Path) -> None:
        self._path = socket_path

    def info(self, *, timeout_s: float = ANSWER_S) -> dict[str, Any]:
        """A first word: who is there. Raises SilentError soon, and NotRunningError at once."""
        try:
            found: dict[str, Any] = self.get("/info", timeout_s=timeout_s)
        except SilentError as error:
            raise SilentError(f"{error}{self._remedy()}") from None
        return found

    def _remedy(self) -> str:
        pid = holder(Home(data_dir=self._path.parent, config_file=self._path))
        return f"; if it hangs, `kill -9 {pid}` ends it, and nothing that it acknowledged is lost" if pid else ""

    def get(self, path: str, *, timeout_s: float | None = _TIMEOUT_S, **query: object) -> Any:
        given = {name: value for name, value in query.items() if value is not None}
        return self._request("GET", f"{path}?{urlencode(given)}" if given else path, timeout_s=timeout_s)

    def post(self, path: str, body: Any = None, *, timeout_s: float | None = _TIMEOUT_S) -> Any:
        return self._request("POST", path, body or {}, timeout_s=timeout_s)

    def delete(self, path: str) -> Any:
        return self._request("DELETE", path, timeout_s=_TIMEOUT_S)

    def stream_sse(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[tuple[str, str]]:
        """The events of a stream as (event, data), until it ends. An event without a name is a `message`."""
        yield from self._stream(self._open(None), method, path, body, headers)

    def follow(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Feed:
        """The same for somebody who cannot only wait."""
        connection = self._open(None)
        return Feed(self._stream(connection, method, path, body, headers), connection.sock)

    def _stream(
        self,
        connection: _UnixConnection,
        method: str,
        path: str,
        body: Any,
        headers: Mapping[str, str] | None,
    ) -> Iterator[tuple[str, str]]:
        try:
            yield from _events(self._send(connection, method, path, body, headers))
        except (OSError, http.client.HTTPException) as error:
            raise self._lost() from error
        finally:
            connection.close()

    def _request(self, method: str, path: str, body: Any = None, *, timeout_s: float | None) -> Any:
        connection = self._open(timeout_s)
        try:
            raw = self._send(connection, method, path, body, None).read()
        except TimeoutError:
            raise SilentError(f"the daemon on {self._path.parent} did not answer within {timeout_s:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            raise self._lost() from error
        finally:
            connection.close()
        return _decoded(raw) if raw else {}

    def _open(self, timeout_s: float | None) -> _UnixConnection:
        connection = _UnixConnection(self._path, timeout_s)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            if isinstance(error, FileNotFoundError | NotADirectoryError | ConnectionRefusedError):
                raise NotRunningError(
                    f"no daemon runs on {self._path.parent} (start one with `hermes daemon`)"
                ) from None
            if isinstance(error, TimeoutError | BlockingIOError):  # nobody has taken the last callers in
                raise SilentError(f"the daemon on {self._path.parent} does not take calls") from None
            raise HermesError(f"the admin socket {self._path} cannot be used: {error.strerror or error}") from error
        return connection

    def _send(
        self,
        connection: _UnixConnection,
        method: str,
        path: str,
        body: Any,
        headers: Mapping[str, str] | None,
    ) -> http.client.HTTPResponse:
        encoded = None if body is None else json.dumps(body).encode("ascii")
        content_type = {} if body is None else {"Content-Type": "application/json"}
        token = read_token(token_file(self._path))  # after the connection: a daemon writes it before it listens
        proof = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request(method, path, body=encoded, headers={**content_type, **proof, **(headers or {})})
        response = connection.getresponse()
        if response.status >= 400:
            raise _refusal(response)
        return response

    def _lost(self) -> LostError:
        return LostError(f"the daemon on {self._path.parent} went away in the middle of an answer")


class Feed:
    """A stream's events, read by a thread of their own: whoever waits for them can look up now and then."""

    def __init__(self, events: Iterator[tuple[str, str]], source: socket.socket) -> None:
        self._events = events
        self._source = source
        self._arrived: queue.SimpleQueue[tuple[str, str] | HermesError | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._read, name="hermes-feed", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            for event in self._events:
                self._arrived.put(event)
        except HermesError as error:
            self._arrived.put(error)
        finally:
            self._arrived.put(None)

    def looking_up(self, every_s: float) -> Iterator[tuple[str, str] | None]:
        """Each event, and None whenever nothing came for so long."""
        while True:
            try:
                arrived = self._arrived.get(timeout=every_s)
            except queue.Empty:
                yield None
                continue
            if isinstance(arrived, HermesError):
                raise arrived
            if arrived is None:
                return
            yield arrived

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with suppress(OSError):  # closed already
            self._source.shutdown(socket.SHUT_RDWR)  # wakes the thread, which closes what it reads from
        self._thread.join()


def connect(environ: Mapping[str, str]) -> AdminClient:
    return AdminClient(Home.from_environ(environ).socket)


def session_path(session: str) -> str:
    return f"/sessions/{quote(session, safe='')}"


def _decoded(raw: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(raw)
    except ValueError as error:
        raise HermesError("the daemon's answer is not JSON; is it another version?") from error
    if not isinstance(answer, dict):
        raise HermesError("the daemon's answer is not what this command knows; is it another version?")
    return answer


def _refusal(response: http.client.HTTPResponse) -> AdminError:
    try:
        problem = json.loads(response.read())["error"]
        return AdminError(str(problem["message"]), status=response.status, code=str(problem.get("code") or ""))
    except (ValueError, KeyError, TypeError):
        return AdminError(f"the daemon answered {response.status} {response.reason}", status=response.status)


def _events(response: http.client.HTTPResponse) -> Iterator[tuple[str, str]]:
    event, data = "", []
    for raw in _lines(response):
        line = raw.decode("utf-8", "replace").rstrip("\r")
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            event = value
        elif field == "data":
            data.append(value)
        elif not line:
            if data:
                yield event or "message", "\n".join(data)
            event, data = "", []


def _lines(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """The response's own readline takes a body that was cut off for a finished one."""
    rest = b""
    while part := response.read1(65_536):
        *lines, rest = (rest + part).split(b"\n")
        yield from lines
