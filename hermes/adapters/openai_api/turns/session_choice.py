"""Session that a request names. Every route reads the same headers and fields.

A session id comes from the header `X-Hermes-Session-Id` or from the fields `session_id` and `conversation`.
`previous_response_id` names a response. The header `X-Hermes-Session-Key` is a stable key, for example of a user; it
counts if nothing else names a session.
"""

from __future__ import annotations

from aiohttp import web

from hermes.adapters.http.field import contradict, short_text
from hermes.adapters.http.parameter import KEY_HEADER, SESSION_HEADER, header, session_in_header
from hermes.adapters.http.problem import ProblemError
from hermes.adapters.openai_api.turns.placement import no_previous
from hermes.adapters.openai_api.turns.token_parameter import read_token
from hermes.domain.ids import RESPONSE, SessionId, SessionKey, TurnToken
from hermes.domain.values import dataclass

_MAX_NAME = 256
PREVIOUS = "previous_response_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionChoice:
    """Session that a request names: at most one of the fields is set."""

    session: SessionId | None = None
    key: SessionKey | None = None
    previous: TurnToken | None = None

    @property
    def is_open(self) -> bool:
        """Return whether the request names no session."""
        return self.session is None and self.key is None and self.previous is None

    @property
    def scope(self) -> str:
        """Return the choice as text, for the fingerprint of a request."""
        return (self.previous.text(RESPONSE) if self.previous else None) or self.session or self.key or ""


def read_choice(
    request: web.Request, platform: str, named: SessionId | None = None, previous: str | None = None
) -> SessionChoice:
    """Return the session that a request names. `named` comes from its body, `previous` is a response's id."""
    session = one_session(session_in_header(request), named)
    stable = header(request, KEY_HEADER)
    name = "" if stable is None else short_text(stable, KEY_HEADER, most=_MAX_NAME)
    if session is not None and previous is not None:
        message = f"Name one session: send {PREVIOUS} or a session ({SESSION_HEADER}, conversation), not both."
        contradict(PREVIOUS, message)
    if previous is not None:
        return SessionChoice(previous=_token(previous))
    if session is not None:
        return SessionChoice(session=session)
    if name:
        return SessionChoice(key=SessionKey(f"agent:main:{platform}:key:{name}"))
    return SessionChoice()


def one_session(*named: SessionId | None) -> SessionId | None:
    """Return the session that a request names in several places."""
    found = set(filter(None, named))
    if len(found) > 1:
        contradict(SESSION_HEADER, f"{SESSION_HEADER}, conversation and session_id must name the same session.")
    return found.pop() if found else None


def _token(text: str) -> TurnToken:
    try:
        return read_token(text, RESPONSE)
    except ProblemError as error:
        raise no_previous() from error
