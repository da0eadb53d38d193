"""Talks to the daemon: HTTP over the admin socket, with nothing but the standard library.

Each request has its own connection. Whatever goes wrong comes out as a HermesError that reads well on a terminal.
"""

from __future__ import annotations

import http.client
import json
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from hermes.errors import HermesError, NotRunningError
from hermes.home import Home

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_TIMEOUT_S = 30.0


class AdminError(HermesError):
    """The daemon understood the request and refused it."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


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
        connection = self._open(None)
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
            raise HermesError(f"the daemon did not answer within {timeout_s:g} s") from None
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
                    f"No daemon runs on {self._path.parent} (start one with `hermes daemon`)"
                ) from None
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
        connection.request(method, path, body=encoded, headers={**content_type, **(headers or {})})
        response = connection.getresponse()
        if response.status >= 400:
            raise AdminError(_complaint(response), status=response.status)
        return response

    def _lost(self) -> LostError:
        return LostError(f"the daemon on {self._path.parent} went away in the middle of an answer")


def connect(environ: Mapping[str, str]) -> AdminClient:
    return AdminClient(Home.from_environ(environ).socket)


def session_path(session: str) -> str:
    return f"/sessions/{quote(session, safe='')}"


def _decoded(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError as error:
        raise HermesError("the daemon's answer is not JSON; is it another version?") from error


def _complaint(response: http.client.HTTPResponse) -> str:
    try:
        return str(json.loads(response.read())["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"the daemon answered {response.status} {response.reason}"


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
