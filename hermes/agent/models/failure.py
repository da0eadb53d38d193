"""Failures of a model endpoint, translated to a known kind.

A status, an error object or a broken connection becomes a `Failure` whose text tells what happened and what to do.
It never contains the key. The provider's text is shortened, and HTML is dropped.
"""

from __future__ import annotations

import json
import math
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http import HTTPStatus
from urllib.parse import urlsplit, urlunsplit

from hermes.domain.errors import ModelError
from hermes.domain.turn.turn_failure import Failure, FailureCause, FailureKind
from hermes.domain.values import replace

PROVIDER_TEXT_MAX = 300  # characters of the provider's text

_HINTS: Mapping[FailureKind, str] = {
    FailureKind.AUTH: "check the key in model.api_key_file, or in the variable that model.api_key_env names",
    FailureKind.BILLING: "check plan and balance at the provider",
    FailureKind.RATE_LIMIT: "try again later, or ask the provider for a higher limit",
    FailureKind.OVERLOADED: "try again later",
    FailureKind.TIMEOUT: "try again later",
    FailureKind.CONNECTION: "check model.base_url and the network",
    FailureKind.CONTEXT_OVERFLOW: "use /compress or /new, or a model with a larger context",
    FailureKind.BAD_REQUEST: "check model.name, model.base_url and the options of the request",
    FailureKind.MALFORMED_REPLY: "try again; if it stays, check that model.base_url is OpenAI-compatible",
    FailureKind.POLICY: "rephrase the message",
    FailureKind.UNSUPPORTED: "ask for a text answer",
    FailureKind.INTERNAL: "see the log for details",
}

_CAUSES: Mapping[FailureCause, str] = {
    FailureCause.REFUSED: "refused the connection",
    FailureCause.UNKNOWN_HOST: "has an unknown host name",
    FailureCause.TLS: "could not be reached over TLS",
    FailureCause.TIMEOUT: "did not answer in time",
    FailureCause.BROKEN: "broke the connection",
    FailureCause.UNREACHABLE: "could not be reached",
}
# In this order: a broken connection has many names.
_TRANSPORT: tuple[tuple[type[BaseException], FailureCause], ...] = (
    (TimeoutError, FailureCause.TIMEOUT),
    (socket.gaierror, FailureCause.UNKNOWN_HOST),
    (ssl.SSLError, FailureCause.TLS),
    (ConnectionRefusedError, FailureCause.REFUSED),
    (ConnectionError, FailureCause.BROKEN),
)
_VERSION = re.compile(r"/v\d+\w*(/|$)")
# Codes that are more precise than the status.
_PRECISE = (
    ("context_length", FailureKind.CONTEXT_OVERFLOW),
    ("context_size", FailureKind.CONTEXT_OVERFLOW),
    ("insufficient_quota", FailureKind.BILLING),
    ("billing", FailureKind.BILLING),
    ("content_filter", FailureKind.POLICY),
    ("content_policy", FailureKind.POLICY),
)
# Codes that decide if there is no status: an error within a stream.
_GENERAL = (
    ("rate_limit", FailureKind.RATE_LIMIT),
    ("overloaded", FailureKind.OVERLOADED),
    ("too_large", FailureKind.CONTEXT_OVERFLOW),
    ("timeout", FailureKind.TIMEOUT),
    ("api_key", FailureKind.AUTH),
    ("authentication", FailureKind.AUTH),
    ("permission", FailureKind.AUTH),
    ("invalid_request", FailureKind.BAD_REQUEST),
)
_STATUS: Mapping[int, FailureKind] = {
    401: FailureKind.AUTH,
    402: FailureKind.BILLING,
    403: FailureKind.AUTH,
    408: FailureKind.TIMEOUT,
    413: FailureKind.CONTEXT_OVERFLOW,
    429: FailureKind.RATE_LIMIT,
    504: FailureKind.TIMEOUT,
}
_STATUSES = frozenset(map(str, range(400, 600)))
# Phrases of endpoints that have no code for an overflow.
_OVERFLOW_PHRASES = ("context length", "context window", "context size", "prompt is too long", "too many tokens")


def failure(kind: FailureKind, what: str, *, retry_after_s: float | None = None) -> Failure:
    return Failure(kind=kind, message=f"{what}; {_HINTS[kind]}", retry_after_s=retry_after_s)


def model_error(kind: FailureKind, what: str) -> ModelError:
    return ModelError(failure(kind, what))


def malformed(what: str) -> ModelError:
    return model_error(FailureKind.MALFORMED_REPLY, what)


def from_status(
    status: int, headers: Mapping[str, str], body: bytes, *, secret: str, now: float, address: str = ""
) -> Failure:
    """Return the failure for a response with a status other than 200. `address` comes from `address_of`."""
    code, text = _read_error(_parse(body))
    kind = _kind(status, code, text)
    what = f"{_endpoint(address)} answered with status {status}{_quote(text, secret)}"
    found = failure(kind, what, retry_after_s=retry_after(headers, now))
    message = found.message + (_address_hint(address) if status == HTTPStatus.NOT_FOUND else "")
    return replace(found, message=message, address=address, cause=FailureCause.STATUS, status=status)


def with_remedy(found: Failure, source: str) -> Failure:
    """Return the failure with advice that names the variable or the file of the key."""
    hint = _HINTS.get(found.kind, "")
    if found.kind not in (FailureKind.AUTH, FailureKind.BILLING) or not source or hint not in found.message:
        return found
    advice = f"{'check the key' if found.kind is FailureKind.AUTH else f'{hint}, or use another key'} in {source}"
    return replace(found, message=found.message.replace(hint, advice))


def while_retried(found: Failure) -> str:
    """Return the message for a failure that Hermes retries by itself: without the advice to try again."""
    is_retry_advice = found.kind in (FailureKind.RATE_LIMIT, FailureKind.OVERLOADED, FailureKind.TIMEOUT)
    return found.message.removesuffix(f"; {_HINTS[found.kind]}") if is_retry_advice else found.message


def with_near_names(found: Failure, model: str, known: Sequence[str]) -> Failure:
    """Return the failure of an unknown model with the most similar names that the endpoint has."""
    if not known or model in known:
        return found
    from difflib import get_close_matches  # noqa: PLC0415 - only for mistakes

    near = get_close_matches(model, known, n=3, cutoff=0.5)
    return replace(found, message=f"{found.message}; similar models there: {', '.join(near)}") if near else found


def from_error_object(error: object, *, secret: str) -> Failure:
    """Return the failure for an error object within a stream. A numeric code is a status."""
    code, text = _read_error({"error": error})
    number = code.partition(" ")[0]
    kind = _kind(int(number) if number in _STATUSES else None, code, text)
    return failure(kind, f"the model endpoint reported an error{_quote(text, secret)}")


def from_transport(error: BaseException, *, address: str = "") -> Failure:
    """Return the failure for a failed connection. The chain of causes decides, not the transport's class."""
    cause = _cause_of(error)
    kind = FailureKind.TIMEOUT if cause is FailureCause.TIMEOUT else FailureKind.CONNECTION
    found = failure(kind, f"{_endpoint(address)} {_CAUSES[cause]}")
    return replace(found, address=address, cause=cause)


def _cause_of(error: BaseException) -> FailureCause:
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__  # not every library names the cause
    for kind, cause in _TRANSPORT:
        if any(isinstance(each, kind) for each in chain):
            return cause
    return FailureCause.UNREACHABLE if isinstance(chain[-1], OSError) else FailureCause.BROKEN


@lru_cache(maxsize=64)
def address_of(url: str, *, secret: str = "") -> str:
    """Return the address for people and logs: without user name, password, query and key."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    shown = urlunsplit((parts.scheme, host, parts.path, "", ""))
    return shown.replace(secret, "***") if secret else shown


def _endpoint(address: str) -> str:
    return f"the model endpoint at {address}" if address else "the model endpoint"


def _address_hint(address: str) -> str:
    path = urlsplit(address).path.rstrip("/")
    if path.endswith("/chat/completions"):
        return "; model.base_url ends before /chat/completions"
    return "" if _VERSION.search(path) else "; should model.base_url end in /v1?"


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds to wait that the endpoint requests in milliseconds, seconds or as a date."""
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _seconds(value)
    if seconds is not None or value is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _seconds(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _kind(status: int | None, code: str, text: str) -> FailureKind:
    for word, kind in _PRECISE:
        if word in code:
            return kind
    if status in (400, 422, None) and any(phrase in text.lower() for phrase in _OVERFLOW_PHRASES):
        return FailureKind.CONTEXT_OVERFLOW
    if status is not None:
        return _STATUS.get(status, FailureKind.OVERLOADED if status >= 500 else FailureKind.BAD_REQUEST)
    return next((kind for word, kind in _GENERAL if word in code), FailureKind.OVERLOADED)


def _parse(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _read_error(reply: object) -> tuple[str, str]:
    """Return an error's code and type in lower case, and its message."""
    error = reply.get("error", reply) if isinstance(reply, dict) else None
    if isinstance(error, str):
        return "", error
    if not isinstance(error, dict):
        return "", ""
    words = [str(error[name]) for name in ("code", "type") if error.get(name) is not None]
    message = error.get("message")
    return " ".join(words).lower(), message if isinstance(message, str) else ""


def _quote(text: str, secret: str) -> str:
    if secret:
        text = text.replace(secret, "***")
    text = " ".join(text.encode("utf-8", "replace").decode().split())
    return f" ({text[:PROVIDER_TEXT_MAX]})" if text else ""
