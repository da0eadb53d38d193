"""Whether the tokens of a chat platform are good, asked of the platform itself, and a first word to somebody there.

No message of an error here holds any part of a token.
"""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.request
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from hermes.adapters.slack.manifest import SCOPES
from hermes.errors import HermesError
from hermes.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from email.message import Message

_TIMEOUT_S = 15.0
_HELLO = "Hello! I am set up, and listen here as soon as the daemon runs."


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


# ---------------------------------------------------------------- Telegram


def _telegram(base_url: str, token: str, method: str, **about: str) -> Any:
    status, answer, _ = _call(f"{base_url}/bot{token}/{method}", about, {}, "Telegram")
    if answer.get("ok"):
        return answer["result"]
    if status in (401, 404):
        raise BadTokenError(
            "Telegram does not know this token: copy it again from @BotFather, or have it make a new one"
        )
    raise UnreachableError(f"Telegram refused {method}: {answer.get('description', status)}")


def _check_telegram(base_url: str, token: str) -> str:
    if not re.fullmatch(r"\d+:[\w-]{20,}", token, re.ASCII):
        raise BadTokenError("this is not a bot's token: one looks like 123456:ABC-DEF..., digits and a colon first")
    return f"@{_telegram(base_url, token, 'getMe')['username']}"


def _remark_on_telegram(base_url: str, token: str) -> str:
    if _telegram(base_url, token, "getMe").get("can_read_all_group_messages", True):
        return ""
    return (
        "Its privacy mode is on: telegram.wake_words, free_response_chats and require_mention: false need it off "
        "(@BotFather, /setprivacy, Disable; then add the bot to the group anew)."
    )


def _greet_on_telegram(base_url: str, token: str, user: str) -> None:
    try:
        _telegram(base_url, token, "sendMessage", chat_id=user, text=_HELLO)
    except UnreachableError as error:
        raise UnreachableError(f"{error} (a bot can write only to people who have written to it first)") from error


# ---------------------------------------------------------------- Slack

_SLACK_ADVICE = {
    "invalid_auth": "Slack does not know this token: copy it again from the app's page",
    "not_authed": "Slack saw no token",
    "account_inactive": "this token belongs to an account or a workspace that is gone",
    "token_revoked": "this token was revoked: install the app again",
    "token_expired": "this token has expired: install the app again",
    "not_allowed_token_type": "this is another kind of token than the one that is needed here",
    "missing_scope": "this token lacks a scope",
}


def _slack(base_url: str, token: str, method: str, **about: str) -> tuple[dict[str, Any], Sequence[str]]:
    """The answer, and the scopes that the token has, where Slack tells them."""
    bearer = {"Authorization": f"Bearer {token}"}
    _, answer, headers = _call(f"{base_url}/{method}", about, bearer, "Slack")
    if answer.get("ok"):
        return answer, [each.strip() for each in headers.get("X-OAuth-Scopes", "").split(",") if each.strip()]
    problem = str(answer.get("error", "nothing"))
    if problem in _SLACK_ADVICE:
        needed = f": it needs {answer['needed']}" if answer.get("needed") else ""
        raise BadTokenError(f"{_SLACK_ADVICE[problem]} ({problem}){needed}")
    raise UnreachableError(f"Slack refused {method}: {problem}")


def _check_slack_bot(base_url: str, token: str) -> str:
    if not token.startswith("xoxb-"):
        raise BadTokenError("this is not a bot token: one begins with xoxb-, under OAuth & Permissions")
    who, scopes = _slack(base_url, token, "auth.test")
    found = f"{who.get('user', 'a bot')} in {who.get('team', 'a workspace')}"
    lacking = sorted(set(SCOPES).difference(scopes)) if scopes else []
    if not lacking:
        return found
    return f"{found}, without the scopes {', '.join(lacking)}: `hermes slack manifest` has all of them"


def _check_slack_app(base_url: str, token: str) -> str:
    if not token.startswith("xapp-"):
        raise BadTokenError(
            "this is not an app token: one begins with xapp-, under Basic Information, App-Level Tokens"
        )
    _slack(base_url, token, "apps.connections.open")
    return "Socket Mode works"


def slack_team(base_url: str, token: str) -> str:
    """The id of the workspace that a bot's token opens."""
    return str(_slack(base_url, token, "auth.test")[0].get("team_id") or "")


def _check_signing_secret(_base_url: str, secret: str) -> str:
    """By its looks: Slack answers nothing that is signed with it, it only signs."""
    if not re.fullmatch(r"[0-9a-f]{32}", secret):
        raise BadTokenError("this is not a signing secret: one is 32 digits and letters, under Basic Information")
    return "signed requests"


def _greet_on_slack(base_url: str, token: str, user: str) -> None:
    _slack(base_url, token, "chat.postMessage", channel=user, text=_HELLO)


# ---------------------------------------------------------------- both

SETUPS: Mapping[str, PlatformSetup] = {
    "telegram": PlatformSetup(
        name="telegram",
        title="Telegram",
        advice="Write /newbot to @BotFather on Telegram: it asks for a name and gives you a token.",
        base_url="https://api.telegram.org",
        package="telegram",
        tokens=(Token(prompt="Bot token", check=_check_telegram),),
        setting="token_file",
        user_id="a number; @userinfobot tells you yours",
        greet=_greet_on_telegram,
        remark=_remark_on_telegram,
    ),
    "slack": PlatformSetup(
        name="slack",
        title="Slack",
        advice="At api.slack.com/apps choose Create New App, From a manifest, and paste what `hermes slack manifest` "
        "prints; then install the app into your workspace. The bot token (xoxb-...) is under OAuth & Permissions. "
        "The app token (xapp-...) is made under Basic Information, App-Level Tokens; it needs connections:write.",
        base_url="https://slack.com/api",
        package="slack_sdk",
        tokens=(
            Token(prompt="Bot token", check=_check_slack_bot, field="bot_token"),
            Token(prompt="App token", check=_check_slack_app, field="app_token"),
        ),
        setting="tokens_file",
        user_id="like U012AB3CD, in your profile under Copy member ID",
        greet=_greet_on_slack,
    ),
}

SLACK_OVER_HTTP = replace(
    SETUPS["slack"],
    advice="At api.slack.com/apps choose Create New App, From a manifest, and paste what `hermes slack manifest "
    "--url https://YOURS/slack/events` prints, an address that leads to slack.host and slack.port; then install the "
    "app into your workspace. The bot token (xoxb-...) is under OAuth & Permissions, the signing secret under Basic "
    "Information.",
    tokens=(
        SETUPS["slack"].tokens[0],
        Token(prompt="Signing secret", check=_check_signing_secret, field="signing_secret"),
    ),
)


def _call(
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
