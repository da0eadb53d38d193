"""Settings and registry entry of Telegram."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.config.platforms.entry import PlatformEntry
from hermes.config.schema import address_complaint, host_complaint, setting, shaped
from hermes.config.secret import Secret, read_secret_file, usable
from hermes.domain.errors import ConfigError
from hermes.domain.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping


_webhook_complaint = shaped(
    r"(https?://[^\s/@?#]+(/[^\s@?#]*)?)?",
    "must be an address like https://host/telegram, without a password or a query",
)
_user_id_complaint = shaped(r"\d{1,20}|\*", 'must be numeric user ids, or "*" for everyone')
_admin_complaint = shaped(r"\d{1,20}", "must be numeric user ids")
_chat_id_complaint = shaped(r"-?\d{1,20}(:\d{1,20})?", "must be numeric ids: CHAT, or CHAT:TOPIC")


def _group_id_complaint(text: str) -> str:
    if re.fullmatch(r"-\d{1,20}(:\d{1,20})?", text):
        return ""
    if re.fullmatch(r"\d{1,20}", text):
        return "must be ids of groups, which begin with a minus; people go into allowed_users"
    return "must be numeric ids of groups: -CHAT, or -CHAT:TOPIC"


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramConfig:
    enabled: bool = setting(False)
    token_file: str = setting("", path=True)
    base_url: str = setting("", complaint=address_complaint)
    allowed_users: tuple[str, ...] = setting((), complaint=_user_id_complaint)
    admins: tuple[str, ...] = setting((), complaint=_admin_complaint)
    require_mention: bool = setting(True)
    wake_words: tuple[str, ...] = setting(())
    free_response_chats: tuple[str, ...] = setting((), complaint=_chat_id_complaint)
    allowed_chats: tuple[str, ...] = setting((), complaint=_group_id_complaint)
    open_chats: tuple[str, ...] = setting((), complaint=_group_id_complaint)
    webhook_url: str = setting("", complaint=_webhook_complaint)
    webhook_host: str = setting("127.0.0.1", complaint=host_complaint)
    webhook_port: int = setting(8443, least=1, most=65_535)

    def token(self, environ: Mapping[str, str]) -> Secret:
        """Read the token of the bot."""
        if self.token_file:
            return read_secret_file(Path(self.token_file), "telegram.token_file")
        if not (value := environ.get("TELEGRAM_BOT_TOKEN", "").strip()):
            raise ConfigError(
                "the Telegram bot's token is missing: set the environment variable TELEGRAM_BOT_TOKEN or "
                "telegram.token_file; @BotFather on Telegram gives you one",
                missing_variables=("TELEGRAM_BOT_TOKEN",),
            )
        return usable(value, "the token in TELEGRAM_BOT_TOKEN")

    @property
    def places(self) -> tuple[str, ...]:
        return self.allowed_chats

    @property
    def open_places(self) -> tuple[str, ...]:
        return self.open_chats


TELEGRAM = PlatformEntry(
    name="telegram",
    hint="You are in a Telegram chat, often read on a phone. Keep it short; simple markdown works, tables and "
    "headings do not.",
    made_by="hermes.app.factories.telegram",
    set_up_by="hermes.cli.setup.telegram_check",
)
