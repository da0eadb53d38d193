"""Telegram errors: their effect on a delivery, and texts for operators."""

from __future__ import annotations

import re

import aiohttp
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)

from hermes.domain.errors import DeliveryError, PlatformError

# Errors 400 that mean: the chat is gone, we may not write there, or the message to edit was deleted.
_GONE = re.compile(
    r"chat not found|user not found|peer_id_invalid|thread not found|topic_closed|topic_deleted|chat_write_forbidden"
    r"|not enough rights|have no rights|need administrator rights|deactivated|upgraded to a supergroup"
    r"|message to edit not found|message can't be edited|message_id_invalid"
    r"|bot was kicked|bot is not a member|chat_restricted|chat_send_plain_forbidden",
    re.IGNORECASE,
)
_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)


def refuses_markup(error: BadRequest) -> bool:
    return "parse entities" in error.message.lower() or "unsupported start tag" in error.message.lower()


def says_so_already(error: BadRequest) -> bool:
    return "message is not modified" in error.message.lower()


def wait_of(error: RetryAfter) -> float:
    """Return seconds. The library's attribute is changing from a number to a timedelta."""
    wait = error.retry_after
    return float(wait) if isinstance(wait, int) else wait.total_seconds()


def delivery_error(error: TelegramError) -> DeliveryError:
    """Translate an error of an outbound call."""
    match error:
        case RetryAfter():
            wait_s = wait_of(error)
            return DeliveryError(f"Telegram's rate limit is reached; retry in {wait_s:g} s", retry_after_s=wait_s)
        case ChatMigrated():
            return DeliveryError(
                f"the group became the supergroup {error.new_chat_id}", moved_to=str(error.new_chat_id)
            )
        case Forbidden():
            return DeliveryError(f"Telegram does not allow messages to this chat: {error.message}", gone=True)
        case BadRequest():
            gone = bool(_GONE.search(error.message))
            return DeliveryError(f"Telegram refused the message: {error.message}", gone=gone, refused=True)
        case InvalidToken():
            return DeliveryError(explain(error))
    return DeliveryError(explain(error), arrived_perhaps=not isinstance(error.__cause__, _NEVER_SENT))


def platform_error(error: TelegramError) -> PlatformError:
    """Translate an error that ended the intake."""
    retry_after_s = wait_of(error) if isinstance(error, RetryAfter) else None
    return PlatformError(explain(error), retry_after_s=retry_after_s)


def why_not_fetched(error: TelegramError) -> str:
    if isinstance(error, BadRequest) and "too big" in error.message.lower():
        return "Telegram does not let bots download files larger than 20 MB"
    return explain(error)


def explain(error: TelegramError) -> str:
    match error:
        case Conflict() if "webhook" in error.message.lower():
            return (
                "a webhook is set for this bot, so Telegram refuses long polling; "
                "remove it (deleteWebhook) or use another bot"
            )
        case Conflict():
            return (
                "another program polls this bot's updates (409 Conflict); stop it, or use a separate bot. "
                "Nothing is lost: updates that were not stored are delivered again"
            )
        case InvalidToken() if error.__cause__ is not None:
            return "the server is not a Bot API server; check telegram.base_url"
        case InvalidToken():
            return "Telegram rejected the bot token; check TELEGRAM_BOT_TOKEN or telegram.token_file"
        case RetryAfter():
            return f"Telegram's rate limit is reached; retry in {wait_of(error):g} s"
        case TimedOut():
            return _timeout(error)
        case BadRequest() | Forbidden():
            return f"Telegram refused the request: {error.message}"
        case NetworkError() if isinstance(error.__cause__, aiohttp.ClientError | OSError):
            return f"Telegram cannot be reached ({type(error.__cause__).__name__}); check the network"
        case NetworkError():
            status = re.search(r"[A-Z][A-Za-z -]* \(\d{3}\)", error.message)
            return f"Telegram or a proxy failed: {status[0] if status else 'an error'}"
    return f"Telegram returned an invalid answer: {error.message}"


def _timeout(error: TimedOut) -> str:
    if isinstance(error.__cause__, _NEVER_SENT):
        return "Telegram cannot be reached: the connection timed out"
    return "Telegram did not answer in time"
