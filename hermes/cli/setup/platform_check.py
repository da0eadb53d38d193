"""Whether the tokens of a chat platform are good, asked of the platform itself, and a first word to somebody there.

No message of an error here holds any part of a token.
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
HELLO = "Hello! I am set up, and listen here as soon as the daemon runs."


class BadTokenError(HermesError):
    exit_code = 78


class UnreachableError(HermesError):
    exit_code = 75


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A secret that a platform needs."""

    prompt: str
    check: Callable[[str, str], str]  # takes the base address and the token, returns who it belongs to
    field: str = ""  # what it is called in a file that holds several


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformSetup:
    name: str
    title: str
    advice: str  # where the tokens come from
    base_url: str
    package: str  # that the adapter needs
    tokens: tuple[Token, ...]
    setting: str  # that names the file they are kept in
    user_id: str  # what an id of a person looks like, in words
    greet: Callable[[str, str, str], None]  # takes the base address, the first token and a person's id
    remark: Callable[[str, str], str] = lambda _base_url, _token: ""  # what is worth knowing of a good token


def call(
    url: str, about: Mapping[str, str], headers: Mapping[str, str], who: str
) -> tuple[int, dict[str, Any], Message]:
    """The status, the answer, whichever it is, and its headers."""
    request = urllib.request.Request(url, urlencode(about).encode(), dict(headers))  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:  # noqa: S310 - the owner's address
            return response.status, _decoded(response.read(), who), response.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, _decoded(error.read(), who), error.headers
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        # Not "from": the address of the request holds the token.
        raise UnreachableError(f"{who} cannot be reached ({reason}); nothing was changed") from None


def _decoded(raw: bytes, who: str) -> dict[str, Any]:
    try:
        answer = json.loads(raw)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise UnreachableError(f"what answers there is not {who}, or not at the moment; nothing was changed")
    return answer
