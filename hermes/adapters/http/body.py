"""JSON request bodies: untrusted bytes to plain values, or a 4xx that tells what is wrong.

Limits come before parsing: size, time, number of values, depth. JSON is parsed strictly: UTF-8 without a byte order
mark, no NaN or Infinity, no duplicate keys, no number too large for a float.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from typing import Any, NoReturn

from aiohttp import HttpVersion11, web

from hermes.adapters.http.problem import refusal
from hermes.domain.errors import BadInputError

MAX_DEPTH = 64
MAX_VALUES = 100_000  # with the size limit this bounds parsing to about 0.1 s

_EXACT = 2.0**53  # below this a float is exact
_LARGE_BYTES = 2**18  # larger bodies are parsed in a thread
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")  # the parser checks which bracket closes which


async def read_json_body(request: web.Request, *, limit_bytes: int, timeout_s: float) -> bytes:
    if request.content_type != "application/json" or (request.charset or "utf-8").lower() not in ("utf-8", "utf8"):
        raise refusal(415, "unsupported_media_type", "Send the body as Content-Type: application/json, in UTF-8.")
    return await read(request, limit_bytes=limit_bytes, timeout_s=timeout_s)


async def parsed(body: bytes) -> Any:
    return parse(body) if len(body) < _LARGE_BYTES else await asyncio.to_thread(parse, body)


async def read(request: web.Request, *, limit_bytes: int, timeout_s: float) -> bytes:
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise refusal(415, "unsupported_media_type", "Send the body uncompressed, without Content-Encoding.")
    if request.headers.get("Transfer-Encoding", "chunked").lower() != "chunked":
        raise refusal(501, "unsupported_transfer_encoding", "The only Transfer-Encoding is chunked.", close=True)
    try:
        if request.content.is_eof():  # it has arrived, so no timer is needed
            return await _read(request, limit_bytes)
        async with asyncio.timeout(timeout_s):
            return await _read(request, limit_bytes)
    except TimeoutError:
        message = f"The body did not arrive within {timeout_s:g} s."
        raise refusal(408, "request_timeout", message, close=True) from None
    except web.RequestPayloadError as error:
        raise refusal(400, "invalid_body", "The body does not match its headers.", close=True) from error


async def _read(request: web.Request, limit_bytes: int) -> bytes:
    body = bytearray()
    if (request.content_length or 0) <= limit_bytes:
        await ask_for_body(request)
        async for piece in request.content.iter_any():
            body += piece
            if len(body) > limit_bytes:
                break
        else:
            return bytes(body)
    message = f"The body is larger than {limit_bytes:,} bytes."
    raise refusal(413, "request_too_large", message, close=True)


async def continue_later(request: web.Request) -> None:
    """Handle `Expect` of a request: the body is asked for after the checks of key and size."""
    if request.headers.get("Expect", "").lower() != "100-continue":
        raise refusal(417, "expectation_failed", "Only Expect: 100-continue is supported.")


def continued_later(route: web.RouteDef) -> web.RouteDef:
    """Return the route with `continue_later`."""
    return web.RouteDef(route.method, route.path, route.handler, {**route.kwargs, "expect_handler": continue_later})


async def ask_for_body(request: web.Request) -> None:
    """Send `100 Continue` to a client that waits for it."""
    if request.headers.get("Expect") and request.version >= HttpVersion11 and not request.content.total_bytes:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # the answer has not begun


def parse(body: bytes) -> Any:
    if body.startswith(b"\xef\xbb\xbf"):
        _refuse("The body starts with a byte order mark; send plain UTF-8.")
    too_deep = f"The body is nested more than {MAX_DEPTH} levels deep."
    unpaired = _brackets_beyond_depth(body)
    if len(unpaired) > MAX_DEPTH:  # with fewer the parser reports the syntax error
        _refuse(too_deep)
    try:
        value = json.loads(
            body.decode(),
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
    except UnicodeDecodeError as error:
        _refuse(f"The body is not valid UTF-8 (at byte {error.start}).")
    except json.JSONDecodeError as error:
        _refuse(f"The body is not valid JSON: {error.msg} (line {error.lineno}, column {error.colno}).")
    if unpaired:
        _refuse(too_deep)
    if b"\\ud" in body.lower() and not _is_text(value):
        _refuse("The body has half a surrogate pair (an escape from \\ud800 to \\udfff without its other half).")
    return value


def _is_text(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _brackets_beyond_depth(body: bytes) -> bytes:
    """Return the brackets outside strings that are left after removing the innermost pairs MAX_DEPTH times.

    Uses whole-body operations that run in C: a Python loop over 8 MiB would block the event loop for a second.
    """
    if len(body) <= MAX_VALUES and body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return b""  # the usual case: too few for more
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if unescaped.count(b'"') > 2 * MAX_VALUES:
        _refuse(f"The body has more than {MAX_VALUES:,} strings.")
    outside = re.sub(rb'"[^"]*"?', b"", unescaped)
    brackets = outside.translate(_ONE_KIND, _NOT_BRACKETS)
    if outside.count(b",") + len(brackets) > MAX_VALUES:
        _refuse(f"The body has more than {MAX_VALUES:,} values.")
    for _ in range(MAX_DEPTH):
        if not brackets:
            break
        brackets = brackets.replace(b"[]", b"")
    return brackets


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        _refuse("An object in the body has the same key twice.")
    return value


def _integer(digits: str) -> int | float:
    """Return an integer of 64 bits, or a larger one as a float."""
    if len(digits) > 20 or not -(2**63) <= int(digits) < 2**63:
        return _finite(digits)
    return int(digits)


def _float(digits: str) -> int | float:
    """Return the number. A whole one is an integer in JSON Schema, also with a decimal point."""
    value = _finite(digits)
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        _refuse("The body has a number that is too large.")
    return value


def _constant(name: str) -> NoReturn:
    _refuse(f"The body has {name}, which is not JSON.")


def _refuse(message: str) -> NoReturn:
    raise BadInputError(message, code="invalid_json")
