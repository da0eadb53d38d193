"""Client of the daemon: HTTP over the admin socket, with the standard library only.

Each request has its own connection. Every failure is raised as a HermesError with a message for people.
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
from hermes.domain.text.server_event import EventParser

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from hermes.domain.text.server_event import RawEvent

ANSWER_S = 5.0  # longer than a healthy daemon ever needs
_TIMEOUT_S = 30.0
_NO_SUCH_ADDRESS = (
    "not_found",
    "method_not_allowed",
)  # codes of an unknown endpoint, as opposed to an unknown session


class AdminError(HermesError):
    """The daemon answered the request and refused it."""

    def __init__(self, message: str, *, status: int, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code

    @property
    def is_unknown_address(self) -> bool:
        """Return whether the daemon does not have this endpoint: it is another version."""
        return self.code in _NO_SUCH_ADDRESS


class SilentError(HermesError):
    """A daemon holds the socket and does not answer: it hangs, is suspended or overloaded."""


class LostError(NotRunningError):
    """The connection to the daemon was lost in the middle of an answer."""


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
        """Return /info of the daemon. Raises SilentError after `timeout_s`, NotRunningError immediately."""
        try:
            found: dict[str, Any] = self.get("/info", timeout_s=timeout_s)
        except SilentError as error:
            raise SilentError(f"{error}{self._remedy()}") from None
        return found

    def _remedy(self) -> str:
        pid = holder(Home(data_dir=self._path.parent, config_file=self._path))
        return f"; if it hangs, `kill -9 {pid}` ends it; everything that it acknowledged is stored" if pid else ""

    def get(self, path: str, *, timeout_s: float | None = _TIMEOUT_S, **query: object) -> Any:
        given = {name: value for name, value in query.items() if value is not None}
        return self._request("GET", f"{path}?{urlencode(given)}" if given else path, timeout_s=timeout_s)

    def post(
        self,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        timeout_s: float | None = _TIMEOUT_S,
    ) -> Any:
        return self._request("POST", path, body or {}, headers, timeout_s=timeout_s)

    def patch(self, path: str, body: Any) -> Any:
        return self._request("PATCH", path, body, timeout_s=_TIMEOUT_S)

    def delete(self, path: str) -> Any:
        return self._request("DELETE", path, timeout_s=_TIMEOUT_S)

    def stream(self, path: str, last_id: str = "") -> Iterator[RawEvent]:
        """Yield the events of a stream after `last_id`, until it ends."""
        yield from self._stream(self._open(None), path, last_id)

    def follow(self, path: str, last_id: str = "") -> Feed:
        """Return the events as a Feed, for a caller that also does other things while it waits."""
        connection = self._open(None)
        return Feed(self._stream(connection, path, last_id), connection.sock)

    def _stream(self, connection: _UnixConnection, path: str, last_id: str) -> Iterator[RawEvent]:
        headers = {"Last-Event-ID": last_id} if last_id else {}
        parser = EventParser(last_id=last_id)
        try:
            for line in _lines(self._send(connection, "GET", path, headers=headers)):
                if (event := parser.feed(line.decode("utf-8", "replace").rstrip("\r"))) is not None:
                    yield event
        except (OSError, http.client.HTTPException) as error:
            raise self._lost() from error
        finally:
            connection.close()

    def _request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        timeout_s: float | None,
    ) -> Any:
        connection = self._open(timeout_s)
        try:
            raw = self._send(connection, method, path, body, headers=headers or {}).read()
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
            if isinstance(error, TimeoutError | BlockingIOError):  # the backlog of the socket is full
                raise SilentError(f"the daemon on {self._path.parent} does not accept connections") from None
            raise HermesError(f"the admin socket {self._path} cannot be used: {error.strerror or error}") from error
        return connection

    def _send(
        self, connection: _UnixConnection, method: str, path: str, body: Any = None, *, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        encoded = None if body is None else json.dumps(body).encode("ascii")
        content_type = {} if body is None else {"Content-Type": "application/json"}
        token = read_token(token_file(self._path))  # after connecting: the daemon writes it before it listens
        proof = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request(method, path, body=encoded, headers={**content_type, **proof, **headers})
        response = connection.getresponse()
        if response.status >= 400:
            raise _refusal(response)
        return response

    def _lost(self) -> LostError:
        return LostError(f"the daemon on {self._path.parent} closed the connection in the middle of an answer")


class Feed:
    """Events of a stream, read in a thread, so that the caller can wait with a timeout."""

    def __init__(self, events: Iterator[RawEvent], source: socket.socket) -> None:
        self._events = events
        self._source = source
        self._arrived: queue.SimpleQueue[RawEvent | HermesError | None] = queue.SimpleQueue()
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

    def poll(self, every_s: float) -> Iterator[RawEvent | None]:
        """Yield each event, and None whenever none came for `every_s`."""
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
        with suppress(OSError):  # already closed
            self._source.shutdown(socket.SHUT_RDWR)  # wakes the thread, which closes the connection
        self._thread.join()


def connect(environ: Mapping[str, str]) -> AdminClient:
    return AdminClient(Home.from_environ(environ).socket)


def session_path(session: str) -> str:
    return f"/sessions/{quote(session, safe='')}"


def send(client: AdminClient, session: str, verb: str, body: Mapping[str, str]) -> Any:
    """Post to an endpoint of a session, with a clear error if the daemon does not have it."""
    try:
        return client.post(f"/api{session_path(session)}/{verb}", body)
    except AdminError as error:
        if not error.is_unknown_address:
            raise
        raise AdminError(
            f"the running daemon does not support `{verb}`: it is another version; run `hermes restart`",
            status=error.status,
            code=error.code,
        ) from error


def _decoded(raw: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(raw)
    except ValueError as error:
        raise HermesError("the daemon's answer is not JSON; is it another version?") from error
    if not isinstance(answer, dict):
        raise HermesError("the daemon's answer is not a JSON object; is it another version?")
    return answer


def _refusal(response: http.client.HTTPResponse) -> AdminError:
    try:
        problem = json.loads(response.read())["error"]
        return AdminError(str(problem["message"]), status=response.status, code=str(problem.get("code") or ""))
    except (ValueError, KeyError, TypeError):
        return AdminError(f"the daemon answered {response.status} {response.reason}", status=response.status)


def _lines(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """Yield lines. Unlike `response.readline`, this raises if the body was cut off."""
    rest = b""
    while part := response.read1(65_536):
        *lines, rest = (rest + part).split(b"\n")
        yield from lines
