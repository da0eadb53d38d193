"""Settings of the running daemon: list, change in the configuration file, and apply."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from loguru import logger

from hermes.config.editor import plain
from hermes.config.home import Home
from hermes.config.loader import explain_config
from hermes.config.revision import known_setting, set_settings, value_of
from hermes.config.schema import Value
from hermes.config.settings import SETTINGS, Setting
from hermes.domain.errors import BadInputError, ConfigError
from hermes.domain.values import dataclass

DEFAULT = "default"
Reload = Callable[..., Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingView:
    setting: Setting
    value: Value  # in force
    source: str  # where the configured value comes from
    waiting: Value | None = None  # configured, but not in force yet; None: the value is in force

    @property
    def name(self) -> str:
        return self.setting.name

    @property
    def is_live(self) -> bool:
        return self.setting.rule.live

    @property
    def is_set(self) -> bool:
        return self.source != DEFAULT


class SettingService:
    def __init__(self, home: Home, environ: Mapping[str, str], *, reload: Reload) -> None:
        self._home = home
        self._environ = environ
        self._reload = reload

    @property
    def file(self) -> str:
        return str(self._home.config_file)

    async def all(self) -> list[SettingView]:
        """Return all settings. Raises ConfigError if the file is not valid, BadInputError in an embedded daemon."""
        changes = await self._reload(dry_run=True)
        differs = {**changes["applied"], **changes["needs_restart"]}
        config, sources = await asyncio.to_thread(explain_config, self._home, self._environ)
        return [_view(each, config.value(each.name), sources, differs) for each in SETTINGS.values()]

    async def change(self, name: str, text: str, *, who: str) -> Mapping[str, Any]:
        """Write a live setting into the file and reload it. Raises BadInputError, and changes nothing."""
        try:
            setting = known_setting(name)
            if not setting.rule.live:
                raise BadInputError(f"{name} takes effect at a restart: use `hermes config set`", param=name)
            value = value_of(setting, [text])
            revised = await asyncio.to_thread(set_settings, self._home, {name: value}, self._environ)
        except ConfigError as error:
            raise BadInputError(str(error), param="value", code="bad_configuration") from error
        if revised.changed:
            logger.info("setting {}: changed by {}", name, who)
        return await self._reload()


def _view(
    setting: Setting, configured: Value, sources: Mapping[str, str], differs: Mapping[str, tuple[Value, Value]]
) -> SettingView:
    now, later = differs.get(setting.name, (configured, None))
    source = sources.get(setting.name, DEFAULT)
    return SettingView(setting=setting, value=now, source=source, waiting=later)


def shown(value: Value) -> str:
    """Return a value as `hermes config set` takes it."""
    found = plain(value)
    if isinstance(found, list):
        return ", ".join(found)
    return str(found).lower() if isinstance(found, bool) else str(found)
