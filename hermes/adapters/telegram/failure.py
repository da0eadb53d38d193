"""What goes wrong between us and Telegram, in plain words, and what it means for a delivery."""

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

# Of 400s: there is nobody (any more) who could be told, or we may not, or a message to be edited was taken away.
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
    """Seconds. The library's attribute is on its way from a number to a timedelta."""
    wait = error.retry_after
    return float(wait) if isinstance(wait, int) else wait.total_seconds()


def delivery_error(error: TelegramError) -> DeliveryError:
    """What an error means for whoever wanted something said."""
    match error:
        case RetryAfter():
            wait_s = wait_of(error)
            return DeliveryError(f"Telegram wants us to wait for {wait_s:g} s", retry_after_s=wait_s)
        case ChatMigrated():
            return DeliveryError(
                f"the group is a supergroup now, {error.new_chat_id}", moved_to=str(error.new_chat_id)
            )
        case Forbidden():
            return DeliveryError(f"Telegram does not let us talk there: {error.message}", gone=True)
        case BadRequest():
            gone = bool(_GONE.search(error.message))
            return DeliveryError(f"Telegram refused it: {error.message}", gone=gone, refused=True)
        case InvalidToken():
            return DeliveryError(explain(error))
    return DeliveryError(explain(error), arrived_perhaps=not isinstance(error.__cause__, _NEVER_SENT))


def platform_error(error: TelegramError) -> PlatformError:
    """What ended the polling."""
    retry_after_s = wait_of(error) if isinstance(error, RetryAfter) else None
    return PlatformError(explain(error), retry_after_s=retry_after_s)


def why_not_fetched(error: TelegramError) -> str:
    if isinstance(error, BadRequest) and "too big" in error.message.lower():
        return "Telegram gives bots no files of more than 20 MB"
    return explain(error)


def explain(error: TelegramError) -> str:
    match error:
        case Conflict() if "webhook" in error.message.lower():
            return (
                "a webhook is set for this bot, and Telegram gives its messages to that alone; "
                "remove it (deleteWebhook), or use another bot"
            )
        case Conflict():
            return (
                "another program fetches this bot's messages at the same time (409 Conflict); stop the other one, or "
                "give each its own bot. Nothing is lost: what this one has not stored comes again"
            )
        case InvalidToken() if error.__cause__ is not None:
            return "what answers is no Bot API; check telegram.base_url"
        case InvalidToken():
            return "Telegram does not know this bot token; check TELEGRAM_BOT_TOKEN or telegram.token_file"
        case RetryAfter():
            return f"Telegram wants us to wait for {wait_of(error):g} s"
        case TimedOut():
            return _timeout(error)
        case BadRequest() | Forbidden():
            return f"Telegram refused the request: {error.message}"
        case NetworkError() if isinstance(error.__cause__, aiohttp.ClientError | OSError):
            return f"Telegram cannot be reached ({type(error.__cause__).__name__}); is there a network?"
        case NetworkError():
            status = re.search(r"[A-Z][A-Za-z -]* \(\d{3}\)", error.message)
            return f"Telegram, or something on the way to it, is out of order: {status[0] if status else 'an error'}"
    return f"Telegram answered with something that cannot be understood: {error.message}"


def _timeout(error: TimedOut) -> str:
    if isinstance(error.__cause__, _NEVER_SENT):
        return "Telegram cannot be reached: no connection in time"
    return "Telegram did not answer in time"
