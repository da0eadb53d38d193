"""Factory of the Slack adapter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.app.factories.platform import Check, PlatformAssembly
from hermes.config.log import redact
from hermes.config.platforms.slack import SlackConfig
from hermes.config.secret import Secret, usable
from hermes.config.settings import Config
from hermes.domain.errors import ConfigError
from hermes.domain.values import dataclass
from hermes.ports.chat import ChatAdapter
from hermes.system.extra import install_line
from hermes.system.regular_file import read_regular_file

if TYPE_CHECKING:
    from hermes.adapters.slack.workspace import Credentials

_MAX_FILE = 65_536  # bytes
_FIELDS = ("bot_token", "app_token", "signing_secret")
_TEAM = "team"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens of one workspace."""

    bot_token: Secret
    app_token: Secret | None = None
    signing_secret: Secret | None = None
    team: str = ""  # workspace id; empty if the file does not name it


def make_slack(config: Config, environ: Mapping[str, str]) -> ChatAdapter | None:
    """Make the adapter; None when it is not enabled. Raises ConfigError. Sends nothing."""
    settings = config.slack
    if not settings.enabled:
        return None
    found = tokens(settings, environ)
    check_installed()
    from hermes.adapters.slack.adapter import SlackAdapter  # noqa: PLC0415
    from hermes.adapters.slack.inbound.event import SlackAddressing  # noqa: PLC0415

    return SlackAdapter(
        [_credentials(each) for each in found],
        listen=(settings.host, settings.port) if settings.transport == "http" else None,
        base_url=settings.base_url,
        addressing=SlackAddressing(
            require_mention=settings.require_mention, free_response_channels=settings.free_response_channels
        ),
        reactions=settings.reactions,
    )


def check_installed() -> None:
    """Raise ConfigError when a package is missing."""
    try:
        import hermes.adapters.slack.adapter  # noqa: F401, PLC0415 - slow, and not installed unless wanted
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"slack.enabled needs the package {error.name}, which is not installed; this installs it:\n"
            f"  {install_line('slack')}"
        ) from error


def tokens(settings: SlackConfig, environ: Mapping[str, str]) -> list[Tokens]:
    """Read the tokens of each workspace, and redact them in logs."""
    given = tokens_in(settings.tokens_file) if settings.tokens_file else _from_environ(environ)
    for each in given:
        for secret in (each.bot_token, each.app_token, each.signing_secret):
            if secret is not None:
                redact(secret)
    if settings.transport == "socket" and any(each.app_token is None for each in given):
        raise ConfigError(
            "Slack's Socket Mode needs an app-level token: set SLACK_APP_TOKEN (xapp-…, from the app's Basic "
            "Information page, with the scope connections:write), or slack.transport to http"
        )
    if settings.transport == "http" and any(each.signing_secret is None for each in given):
        raise ConfigError(
            "Slack's Events API needs the app's signing secret: set SLACK_SIGNING_SECRET, from the app's Basic "
            "Information page"
        )
    return given


def _from_environ(environ: Mapping[str, str]) -> list[Tokens]:
    bots = [each.strip() for each in environ.get("SLACK_BOT_TOKEN", "").split(",") if each.strip()]
    if not bots:
        raise ConfigError(
            "the Slack bot's token is missing: set the environment variable SLACK_BOT_TOKEN (xoxb-…) or "
            "slack.tokens_file; `hermes slack manifest` describes the app that gives you one",
            missing_variables=("SLACK_BOT_TOKEN",),
        )
    app, signing = (environ.get(name, "").strip() for name in ("SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET"))
    return [
        Tokens(
            bot_token=usable(bot, "the token in SLACK_BOT_TOKEN"),
            app_token=usable(app, "the token in SLACK_APP_TOKEN") if app else None,
            signing_secret=usable(signing, "the secret in SLACK_SIGNING_SECRET") if signing else None,
        )
        for bot in bots
    ]


def tokens_in(tokens_file: str) -> list[Tokens]:
    """Parse the tokens file. Raises ConfigError."""
    import yaml  # noqa: PLC0415 - slow

    path = Path(tokens_file)
    try:
        raw = read_regular_file(path, max_bytes=_MAX_FILE)
    except OSError as error:
        raise ConfigError(f"slack.tokens_file: {path} cannot be read: {error.strerror}") from error
    try:
        found = yaml.safe_load(raw.decode("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        found = None  # the error text would show secrets
    if not isinstance(found, list) or not found:
        raise ConfigError(f"slack.tokens_file: {path} must hold a YAML list, one entry with a bot_token a workspace")
    return [_entry(each, f"slack.tokens_file: entry {number} of {path}") for number, each in enumerate(found, 1)]


def _entry(entry: Any, what: str) -> Tokens:
    if not isinstance(entry, dict) or not set(entry) <= {*_FIELDS, _TEAM} or "bot_token" not in entry:
        raise ConfigError(f"{what} must have a bot_token, and may have an app_token and a signing_secret")
    secrets = {name: usable(str(value), f"{what}: its {name}") for name, value in entry.items() if name != _TEAM}
    return Tokens(**secrets, team=str(entry.get(_TEAM) or ""))


def _credentials(given: Tokens) -> Credentials:
    from hermes.adapters.slack.workspace import Credentials  # noqa: PLC0415 - as above

    return Credentials(bot=given.bot_token, app=given.app_token, signing=given.signing_secret)


ASSEMBLY = PlatformAssembly(
    make=make_slack,
    checks=(
        Check(
            names=("slack.tokens_file", "slack.enabled"),
            look=lambda config, environ: tokens(config.slack, environ),
        ),
        Check(names=("slack.enabled",), look=lambda _config, _environ: check_installed()),
    ),
)
