"""Whether a daemon could start with the configuration as it is now. Nothing is made, and nobody is connected to.

The one check for `hermes config check`, for the start, for a restart and for a reload: what passes here must not be
refused there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from hermes.assembly import slack, telegram
from hermes.assembly.agent import make_models
from hermes.config import explain_config
from hermes.errors import ConfigError
from hermes.home import Home
from hermes.log import redact
from hermes.secret import check_api_key
from hermes.settings import Config
from hermes.values import dataclass

Look: TypeAlias = Callable[[Config, Mapping[str, str]], object]  # raises ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    names: tuple[str, ...]  # what it is about: the first of these settings that was set says where
    look: Look


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """A configuration with which a daemon can start."""

    config: Config
    sources: Mapping[str, str]  # where each setting that is not at its default was set


def preflight(home: Home, environ: Mapping[str, str]) -> Cleared:
    """Raises ConfigError with every problem there is. It reads files and may import packages: not on the loop."""
    config, sources = explain_config(home, environ)
    problems: list[str] = []
    for check in _checks(home):
        try:
            check.look(config, environ)
        except ConfigError as error:
            where = next((f"{sources[name]}: " for name in check.names if name in sources), "")
            problems += [f"{where}{problem}" for problem in error.problems]
    if problems:
        raise ConfigError(*problems)
    return Cleared(config=config, sources=sources)


def _checks(home: Home) -> tuple[_Check, ...]:
    return (
        _Check(names=("model.api_key_file", "model.api_key_env", "model.provider"), look=make_models),
        _Check(names=("api.key_file",), look=lambda config, environ: check_api_key(home, config, environ)),
        _Check(names=("transcription.api_key_env", "transcription.base_url"), look=_transcription_key),
        _Check(names=("telegram.token_file", "telegram.enabled"), look=_telegram_token),
        _Check(
            names=("telegram.enabled",),
            look=lambda config, _: telegram.check_installed() if config.telegram.enabled else None,
        ),
        _Check(names=("slack.tokens_file", "slack.enabled"), look=_slack_tokens),
        _Check(
            names=("slack.enabled",),
            look=lambda config, _: slack.check_installed() if config.slack.enabled else None,
        ),
    )


def _telegram_token(config: Config, environ: Mapping[str, str]) -> None:
    if config.telegram.enabled:
        redact(config.telegram.token(environ))


def _transcription_key(config: Config, environ: Mapping[str, str]) -> None:
    if config.transcription.base_url and (config.telegram.enabled or config.slack.enabled):  # else nobody asks it
        config.transcription.api_key(environ)


def _slack_tokens(config: Config, environ: Mapping[str, str]) -> None:
    if config.slack.enabled:
        slack.tokens(config.slack, environ)
