"""Check of Slack tokens by calls to Slack, and a first message to a user."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hermes.adapters.slack.manifest import SCOPES
from hermes.cli.setup.platform_check import HELLO, BadTokenError, PlatformSetup, Token, UnreachableError, call
from hermes.domain.values import replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes.config.settings import Config

_SLACK_ADVICE = {
    "invalid_auth": "Slack does not know this token: copy it again from the app's page",
    "not_authed": "Slack received no token",
    "account_inactive": "the account or workspace of this token no longer exists",
    "token_revoked": "this token was revoked: install the app again",
    "token_expired": "this token has expired: install the app again",
    "not_allowed_token_type": "this is the wrong kind of token",
    "missing_scope": "this token lacks a scope",
}


def _slack(base_url: str, token: str, method: str, **about: str) -> tuple[dict[str, Any], Sequence[str]]:
    """Call a method. Return the answer, and the scopes of the token if Slack sends them."""
    bearer = {"Authorization": f"Bearer {token}"}
    _, answer, headers = call(f"{base_url}/{method}", about, bearer, "Slack")
    if answer.get("ok"):
        return answer, [each.strip() for each in headers.get("X-OAuth-Scopes", "").split(",") if each.strip()]
    problem = str(answer.get("error", "nothing"))
    if problem in _SLACK_ADVICE:
        needed = f": it needs {answer['needed']}" if answer.get("needed") else ""
        raise BadTokenError(f"{_SLACK_ADVICE[problem]} ({problem}){needed}")
    raise UnreachableError(f"Slack refused {method}: {problem}")


def _check_slack_bot(base_url: str, token: str) -> str:
    if not token.startswith("xoxb-"):
        raise BadTokenError("this is not a bot token: it starts with xoxb-, see OAuth & Permissions")
    who, scopes = _slack(base_url, token, "auth.test")
    found = f"{who.get('user', 'a bot')} in {who.get('team', 'a workspace')}"
    lacking = sorted(set(SCOPES).difference(scopes)) if scopes else []
    if not lacking:
        return found
    return f"{found}, without the scopes {', '.join(lacking)}: add them, as in `hermes slack manifest`"


def _check_slack_app(base_url: str, token: str) -> str:
    if not token.startswith("xapp-"):
        raise BadTokenError("this is not an app token: it starts with xapp-, see Basic Information, App-Level Tokens")
    _slack(base_url, token, "apps.connections.open")
    return "Socket Mode works"


def slack_team(base_url: str, token: str) -> str:
    """Return the id of the workspace of a bot token."""
    return str(_slack(base_url, token, "auth.test")[0].get("team_id") or "")


def _check_signing_secret(_base_url: str, secret: str) -> str:
    """Check the format only: Slack signs with it and has no call to check it."""
    if not re.fullmatch(r"[0-9a-f]{32}", secret):
        raise BadTokenError("this is not a signing secret: it has 32 hexadecimal digits, see Basic Information")
    return "signed requests"


def _greet_on_slack(base_url: str, token: str, user: str) -> None:
    _slack(base_url, token, "chat.postMessage", channel=user, text=HELLO)


def accounts(config: Config, environ: Mapping[str, str]) -> list[str]:
    """Check the configured tokens. Return their accounts. Raises ConfigError, BadTokenError, UnreachableError."""
    from hermes.app.factories.slack import tokens

    base_url = (config.slack.base_url or SETUP.base_url).rstrip("/")
    found = []
    for each in tokens(config.slack, environ):
        found.append(_check_slack_bot(base_url, each.bot_token.reveal()))
        if each.app_token is not None and config.slack.transport == "socket":
            _check_slack_app(base_url, each.app_token.reveal())
    return found


SETUP = PlatformSetup(
    name="slack",
    title="Slack",
    advice="At api.slack.com/apps choose Create New App, From a manifest, and paste what `hermes slack manifest` "
    "prints. Then install the app into your workspace. The bot token (xoxb-...) is under OAuth & Permissions. "
    "Create the app token (xapp-...) under Basic Information, App-Level Tokens; it needs connections:write.",
    base_url="https://slack.com/api",
    package="slack_sdk",
    tokens=(
        Token(prompt="Bot token", check=_check_slack_bot, field="bot_token"),
        Token(prompt="App token", check=_check_slack_app, field="app_token"),
    ),
    setting="tokens_file",
    user_id="such as U012AB3CD; in your profile: Copy member ID",
    greet=_greet_on_slack,
)

OVER_HTTP = replace(
    SETUP,
    advice="At api.slack.com/apps choose Create New App, From a manifest, and paste what `hermes slack manifest "
    "--url https://YOURS/slack/events` prints. The URL must lead to slack.host and slack.port. Then install the "
    "app into your workspace. The bot token (xoxb-...) is under OAuth & Permissions, the signing secret under Basic "
    "Information.",
    tokens=(
        SETUP.tokens[0],
        Token(prompt="Signing secret", check=_check_signing_secret, field="signing_secret"),
    ),
)
