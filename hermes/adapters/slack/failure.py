"""Slack errors: their effect on a delivery, and texts for operators."""

from __future__ import annotations

from typing import Any, TypeAlias

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

from hermes.domain.errors import DeliveryError, PlatformError

FAILURES = (SlackClientError, aiohttp.ClientError, TimeoutError)  # everything that an API call can raise
Trouble: TypeAlias = SlackClientError | aiohttp.ClientError | TimeoutError

# The chat is gone, we may not write there, or the message to edit was deleted.
_GONE = frozenset(
    {
        "cannot_dm_bot",
        "cant_update_message",
        "channel_is_archived",
        "channel_not_found",
        "edit_window_closed",
        "ekm_access_denied",
        "is_archived",
        "message_not_found",
        "messages_tab_disabled",
        "not_in_channel",
        "restricted_action",
        "restricted_action_read_only_channel",
        "restricted_action_thread_locked",
        "team_not_found",
        "thread_not_found",
        "user_disabled",
        "user_not_found",
    }
)
# Errors after which a part of the call may have taken effect.
_PERHAPS = frozenset({"fatal_error", "internal_error", "request_timeout", "service_unavailable", "team_added_to_org"})
_BAD_TOKEN = frozenset(
    {"account_inactive", "invalid_auth", "not_allowed_token_type", "not_authed", "token_expired", "token_revoked"}
)
_IN_WORDS = {
    "account_inactive": "the bot was removed from this Slack workspace (account_inactive); install the app again",
    "channel_not_found": "the Slack channel does not exist or is not visible to the bot (channel_not_found)",
    "is_archived": "the channel is archived (is_archived)",
    "msg_too_long": "the message is too long for Slack (msg_too_long)",
    "not_in_channel": "the bot is not a member of the channel (not_in_channel); /invite it",
}
_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_DEFAULT_WAIT_S = 30.0  # if Slack does not say how long


def code_of(error: Trouble) -> str:
    """Return Slack's error code; empty if the error did not come from Slack."""
    data = getattr(getattr(error, "response", None), "data", None)
    return str(data.get("error") or "") if isinstance(data, dict) else ""


def status_of(error: Trouble) -> int:
    response: Any = getattr(error, "response", None)
    return int(getattr(response, "status_code", 0) or getattr(response, "status", 0) or 0)


def wait_of(error: Trouble) -> float | None:
    """Return the seconds to wait after a rate limit; None for other errors."""
    if status_of(error) != 429 and code_of(error) not in {"ratelimited", "rate_limited"}:
        return None
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return max(0.0, float(headers.get("Retry-After", _DEFAULT_WAIT_S)))
    except ValueError:
        return _DEFAULT_WAIT_S


def delivery_error(error: Trouble) -> DeliveryError:
    """Translate an error of an outbound call."""
    if (wait_s := wait_of(error)) is not None:
        return DeliveryError(f"Slack's rate limit is reached; retry in {wait_s:g} s", retry_after_s=wait_s)
    code = code_of(error)
    if isinstance(error, SlackApiError) and code and code not in _PERHAPS:
        # A bad token is not the message's fault: it waits until the token is replaced.
        return DeliveryError(explain(error), gone=code in _GONE, refused=code not in _BAD_TOKEN)
    return DeliveryError(explain(error), arrived_perhaps=not isinstance(error, _NEVER_SENT))


def platform_error(error: Trouble) -> PlatformError:
    """Translate an error that ended the intake."""
    return PlatformError(explain(error), retry_after_s=wait_of(error))


def explain(error: Trouble) -> str:
    code = code_of(error)
    if (wait_s := wait_of(error)) is not None:
        return f"Slack's rate limit is reached; retry in {wait_s:g} s"
    if code in _IN_WORDS:
        return _IN_WORDS[code]
    if code in _BAD_TOKEN:
        return (
            f"Slack rejected the token ({code}); check SLACK_BOT_TOKEN (xoxb-…) and SLACK_APP_TOKEN (xapp-…), "
            "or slack.tokens_file"
        )
    if code == "missing_scope":
        data = getattr(error, "response", {})
        return (
            f"the Slack app lacks the scope {data.get('needed')}; "
            "`hermes slack manifest` lists all scopes. Install the app again after the change"
        )
    if code:
        return f"Slack refused the request: {code}"
    if isinstance(error, TimeoutError):
        return "Slack did not answer in time"
    if isinstance(error, SlackClientError):
        return f"Slack or a proxy failed (HTTP {status_of(error)})"
    return f"Slack cannot be reached ({type(error).__name__}); check the network"
