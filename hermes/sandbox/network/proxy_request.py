"""Requests to the sandbox's proxy: CONNECT, absolute-form http, and the server name of a TLS ClientHello. Pure.

Parsing is strict. What two parsers could read differently (line ends, folded headers, two lengths of one body, a
ClientHello in several records) is either handled exactly or refused.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from hermes.domain.values import dataclass
from hermes.sandbox.network.host_list import normal_host
from hermes.sandbox.network.proxy_event import Reason

MAX_HEAD_BYTES = 64 * 1024
END_OF_HEAD = b"\r\n\r\n"

_REQUEST_LINE = re.compile(r"([A-Z]{1,32}) ([!-~]+) (HTTP/1\.[01])")
_AUTHORITY = re.compile(r"(\[[0-9a-f:.%]{1,64}\]|[a-z0-9._%-]{1,254})(?::(\d{1,5}))?", re.IGNORECASE)
_ABSOLUTE = re.compile(r"http://([^/?#@\\]+)(/[^?#]*)?(\?[^#]*)?(?:#.*)?", re.IGNORECASE)
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)")
_LENGTH = re.compile(rb"\d{1,18}")
# Headers that concern one connection only (RFC 9110, 7.6.1), and `host`, which is set from the address.
_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"host",
        b"http2-settings",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"upgrade",
    }
)

_HANDSHAKE, _CLIENT_HELLO = 22, 1
_MAX_RECORD_BYTES = 1 << 14
_MAX_HELLO_RECORDS = 16
_SERVER_NAME, _HOST_NAME = 0, 0


class RequestRefusedError(Exception):
    """The request cannot be served, for this reason."""

    def __init__(self, reason: Reason, host: str = "", port: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.host = host
        self.port = port


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunnel:
    """CONNECT."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainRequest:
    """Request for an http:// address, with its head as the server gets it."""

    host: str
    port: int
    head: bytes
    body_bytes: int | None  # None: in chunks, which end by themselves


ProxyRequest: TypeAlias = Tunnel | PlainRequest
_Headers: TypeAlias = list[tuple[bytes, bytes, bytes]]  # name in lower case, value, line


def parse_request(head: bytes) -> ProxyRequest:
    """Parse the head of a request, which ends with an empty line."""
    first, *lines = head.removesuffix(END_OF_HEAD).split(b"\r\n")
    line = _REQUEST_LINE.fullmatch(first.decode("latin-1"))
    if line is None:
        raise RequestRefusedError(Reason.MALFORMED)
    method, target, version = line.groups()
    headers = [_header(text) for text in lines]
    if method == "CONNECT":
        host, port = _authority(target, None)
        return Tunnel(host=host, port=port)
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is None:
        raise RequestRefusedError(Reason.FORM)
    authority, path, query = absolute.groups(default="")
    host, port = _authority(authority, 80)
    shown = host if port == 80 else f"{host}:{port}"
    start = f"{method} {path or '/'}{query} {version}\r\nHost: {shown}\r\nConnection: close\r\n".encode("ascii")
    return PlainRequest(
        host=host, port=port, head=start + _forwarded(headers) + b"\r\n", body_bytes=_body_bytes(headers)
    )


def _authority(text: str, default_port: int | None) -> tuple[str, int]:
    match = _AUTHORITY.fullmatch(text)
    port = int(match[2]) if match is not None and match[2] else default_port
    if match is None or port is None or not 0 < port < 65536:
        raise RequestRefusedError(Reason.MALFORMED)
    return normal_host(match[1]), port


def _header(line: bytes) -> tuple[bytes, bytes, bytes]:
    match = _HEADER.fullmatch(line)
    if match is None:
        raise RequestRefusedError(Reason.MALFORMED)
    return match[1].lower(), match[2].strip(b" \t"), line


def _forwarded(headers: _Headers) -> bytes:
    named = {
        token.strip().lower() for name, value, _ in headers if name == b"connection" for token in value.split(b",")
    }
    dropped = _HOP_BY_HOP | (named - {b"content-length", b"transfer-encoding"})
    return b"".join(line + b"\r\n" for name, _, line in headers if name not in dropped)


def _body_bytes(headers: _Headers) -> int | None:
    lengths = [value for name, value, _ in headers if name == b"content-length"]
    codings = [value.lower() for name, value, _ in headers if name == b"transfer-encoding"]
    if codings:
        if lengths or codings != [b"chunked"]:
            raise RequestRefusedError(Reason.MALFORMED)
        return None
    if len(lengths) > 1 or not all(_LENGTH.fullmatch(value) for value in lengths):
        raise RequestRefusedError(Reason.MALFORMED)
    return int(lengths[0]) if lengths else 0


def client_hello(received: bytes | bytearray) -> bytes | None:
    """Return the ClientHello at the start of a TLS connection, or None if more bytes are needed.

    It may be split over a few records. Raises RequestRefusedError for anything else.
    """
    message = bytearray()
    at = 0
    for _ in range(_MAX_HELLO_RECORDS):
        if len(received) < at + 5:
            if not (bytes((_HANDSHAKE, 3)) + received[at + 2 :]).startswith(received[at:]):
                raise RequestRefusedError(Reason.NOT_TLS)
            return None
        kind, major, _minor, *size_bytes = received[at : at + 5]
        size = int.from_bytes(size_bytes, "big")
        if (kind, major) != (_HANDSHAKE, 3) or not 0 < size <= _MAX_RECORD_BYTES:
            raise RequestRefusedError(Reason.NOT_TLS)
        message += received[at + 5 : at + 5 + size]
        whole = 4 + int.from_bytes(message[1:4], "big")
        if message[:1] not in (b"", bytes((_CLIENT_HELLO,))) or whole > MAX_HEAD_BYTES:
            raise RequestRefusedError(Reason.NOT_TLS)
        if len(message) >= 4 and len(message) >= whole:
            return bytes(message[4:whole])
        at += 5 + size
    raise RequestRefusedError(Reason.NOT_TLS)


class _Cursor:
    """Position in a TLS structure; reading past its end is an error."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def take(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise RequestRefusedError(Reason.NOT_TLS)
        self._at += size
        return found

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, length_size: int) -> bytes:
        return self.take(self.number(length_size))


def server_name(hello: bytes) -> str | None:
    """Return the server name (SNI) of a ClientHello in normal form, or None if it has none."""
    cursor = _Cursor(hello)
    cursor.take(2 + 32)  # version, random
    cursor.vector(1)  # session id
    cursor.vector(2)  # cipher suites
    cursor.vector(1)  # compression methods
    if not cursor:
        return None
    extensions = _Cursor(cursor.vector(2))
    names: list[bytes] = []
    while extensions:
        kind, data = extensions.number(2), extensions.vector(2)
        if kind == _SERVER_NAME:
            names.append(data)
    if cursor or len(names) > 1:
        raise RequestRefusedError(Reason.NOT_TLS)
    return _single_name(names[0]) if names else None


def _single_name(extension: bytes) -> str:
    outer = _Cursor(extension)
    entries = _Cursor(outer.vector(2))
    kind, name = entries.number(1), entries.vector(2)
    if kind != _HOST_NAME or entries or outer or not name.isascii():
        raise RequestRefusedError(Reason.NOT_TLS)
    return normal_host(name.decode("ascii"))
