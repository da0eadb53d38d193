"""Check of a Telegram token by calls to Telegram, and a first message to a user."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hermes.cli.setup.platform_check import HELLO, BadTokenError, PlatformSetup, Token, UnreachableError, call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.config.settings import Config


def _telegram(base_url: str, token: str, method: str, **about: str) -> Any:
    status, answer, _ = call(f"{base_url}/bot{token}/{method}", about, {}, "Telegram")
    if answer.get("ok"):
        return answer["result"]
    if status in (401, 404):
        raise BadTokenError(
            "Telegram does not know this token: copy it again from @BotFather, or create a new one there"
        )
    raise UnreachableError(f"Telegram refused {method}: {answer.get('description', status)}")


def _check_telegram(base_url: str, token: str) -> str:
    if not re.fullmatch(r"\d+:[\w-]{20,}", token, re.ASCII):
        raise BadTokenError("this is not a bot token: it looks like 123456:ABC-DEF...")
    return f"@{_telegram(base_url, token, 'getMe')['username']}"


def _remark_on_telegram(base_url: str, token: str) -> str:
    if _telegram(base_url, token, "getMe").get("can_read_all_group_messages", True):
        return ""
    return (
        "Privacy mode of the bot is on: telegram.wake_words, free_response_chats and require_mention: false need "
        "it off "
        "(@BotFather, /setprivacy, Disable; then add the bot to the group again)."
    )


def _greet_on_telegram(base_url: str, token: str, user: str) -> None:
    try:
        _telegram(base_url, token, "sendMessage", chat_id=user, text=HELLO)
    except UnreachableError as error:
        raise UnreachableError(f"{error} (a bot can only write to users who wrote to it first)") from error


def accounts(config: Config, environ: Mapping[str, str]) -> list[str]:
    """Check the configured token. Return its account. Raises ConfigError, BadTokenError, UnreachableError."""
    base_url = (config.telegram.base_url or SETUP.base_url).rstrip("/")
    return [_check_telegram(base_url, config.telegram.token(environ).reveal())]


SETUP = PlatformSetup(
    name="telegram",
    title="Telegram",
    advice="Send /newbot to @BotFather on Telegram: it asks for a name and sends you a token.",
    base_url="https://api.telegram.org",
    package="telegram",
    tokens=(Token(prompt="Bot token", check=_check_telegram),),
    setting="token_file",
    user_id="a number; ask @userinfobot",
    greet=_greet_on_telegram,
    remark=_remark_on_telegram,
)
