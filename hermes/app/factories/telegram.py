"""Factory of the Telegram adapter."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.app.factories.platform import Check, PlatformAssembly
from hermes.config.home import Home
from hermes.config.log import redact
from hermes.config.settings import Config
from hermes.domain.errors import ConfigError
from hermes.ports.chat import ChatAdapter
from hermes.system.extra import install_line

_SECRET_FILE = "auth.telegram-webhook"  # noqa: S105 - a name; what begins so is a secret to the gates of tools


def make_telegram(config: Config, environ: Mapping[str, str]) -> ChatAdapter | None:
    """Make the adapter; None when it is not enabled. Raises ConfigError. Sends nothing."""
    settings = config.telegram
    if not settings.enabled:
        return None
    token = settings.token(environ)
    redact(token)
    check_installed()
    from hermes.adapters.telegram.adapter import TelegramAdapter  # noqa: PLC0415
    from hermes.adapters.telegram.addressed import TelegramAddressing  # noqa: PLC0415
    from hermes.adapters.telegram.webhook import WebhookSettings  # noqa: PLC0415

    manners = TelegramAddressing(
        require_mention=settings.require_mention,
        wake_words=settings.wake_words,
        free_response_chats=settings.free_response_chats,
    )
    webhook = None
    if settings.webhook_url:
        webhook = WebhookSettings(url=settings.webhook_url, host=settings.webhook_host, port=settings.webhook_port)
    return TelegramAdapter(
        token,
        base_url=settings.base_url,
        addressing=manners,
        webhook=webhook,
        secret_file=Home.from_environ(environ).data_dir / _SECRET_FILE,
    )


def check_installed() -> None:
    """Raise ConfigError when a package is missing."""
    try:
        import hermes.adapters.telegram.adapter  # noqa: PLC0415 - slow, and not installed unless wanted
        import hermes.adapters.telegram.webhook  # noqa: F401, PLC0415
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"telegram.enabled needs the package {error.name}, which is not installed; this installs it:\n"
            f"  {install_line('telegram')}"
        ) from error


def _check_token(config: Config, environ: Mapping[str, str]) -> None:
    redact(config.telegram.token(environ))


ASSEMBLY = PlatformAssembly(
    make=make_telegram,
    checks=(
        Check(names=("telegram.token_file", "telegram.enabled"), look=_check_token),
        Check(names=("telegram.enabled",), look=lambda _config, _environ: check_installed()),
    ),
)
