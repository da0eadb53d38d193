"""Check of a chat platform's tokens against the platform itself, and a first message to a person.

No error message here contains any part of a token.
"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from hermes.domain.errors import HermesError
from hermes.domain.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from email.message import Message

_TIMEOUT_S = 15.0
HELLO = "Hello! I am set up and will answer here as soon as the daemon runs."


class BadTokenError(HermesError):
    exit_code = 78


class UnreachableError(HermesError):
    exit_code = 75


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """Secret that a platform needs."""

    prompt: str
    check: Callable[[str, str], str]  # (base URL, token) -> account that it belongs to
    field: str = ""  # its key in a file with several tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformSetup:
    name: str
    title: str
    advice: str  # how to get the tokens
    base_url: str
    package: str  # Python package of the adapter
    tokens: tuple[Token, ...]
    setting: str  # setting with the path of the token file
    user_id: str  # description of a user id
    greet: Callable[[str, str, str], None]  # (base URL, first token, user id)
    remark: Callable[[str, str], str] = lambda _base_url, _token: ""  # remark about a valid token, or empty


def call(
    url: str, about: Mapping[str, str], headers: Mapping[str, str], who: str
) -> tuple[int, dict[str, Any], Message]:
    """Return status, body and headers of the response, also of an error response."""
    request = urllib.request.Request(url, urlencode(about).encode(), dict(headers))  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:  # noqa: S310 - the owner's address
            return response.status, _decoded(response.read(), who), response.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, _decoded(error.read(), who), error.headers
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        # Without "from": the URL in the error contains the token.
        raise UnreachableError(f"{who} cannot be reached ({reason}); nothing was changed") from None


def _decoded(raw: bytes, who: str) -> dict[str, Any]:
    try:
        answer = json.loads(raw)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise UnreachableError(f"the response is not from {who}, or {who} is out of order; nothing was changed")
    return answer
