"""Factory of plugins: nothing is imported unless the owner enabled one."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from hermes.app.foundation import Foundation
from hermes.config.events.entries import NAME
from hermes.config.events.event_settings import PluginsConfig
from hermes.domain.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.domain.event.hook import Hook
    from hermes.plugin.api import PluginApi, PluginCommand, PluginPlatform
    from hermes.plugin.loader import LoadedPlugin
    from hermes.ports.chat import ChatAdapter
    from hermes.tools.tool import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugins:
    loaded: tuple[LoadedPlugin, ...] = ()

    @property
    def _apis(self) -> list[PluginApi]:
        return [each.api for each in self.loaded if each.api is not None]

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(tool for api in self._apis for tool in api.tools)

    @property
    def commands(self) -> tuple[PluginCommand, ...]:
        return tuple(command for api in self._apis for command in api.commands)

    @property
    def hooks(self) -> tuple[Hook, ...]:
        return tuple(hook for api in self._apis for hook in api.hooks)

    @property
    def platforms(self) -> dict[str, PluginPlatform]:
        return {platform.name: platform for api in self._apis for platform in api.platforms}

    def adapters(self, failed: Callable[[str, Exception], None]) -> list[ChatAdapter]:
        """Make the adapters of the plugins' chat platforms. One that fails is left out."""
        made = []
        for name, platform in self.platforms.items():
            try:
                made.append(platform.make())
            except Exception as error:  # noqa: BLE001 - code of others: the daemon starts without it
                failed(name, error)
        return made

    def listed(self) -> list[dict[str, Any]]:
        return [
            {
                "name": each.found.name,
                "package": each.found.package,
                "version": each.found.version,
                "problem": each.problem,
                "tools": [] if each.api is None else [tool.name for tool in each.api.tools],
                "commands": [] if each.api is None else [command.name for command in each.api.commands],
                "hooks": [] if each.api is None else [event for hook in each.api.hooks for event in hook.on],
                "platforms": [] if each.api is None else [platform.name for platform in each.api.platforms],
            }
            for each in self.loaded
        ]


async def load_plugins(base: Foundation) -> Plugins:
    plugins = base.config.plugins
    if not plugins.enabled:
        return Plugins()
    return Plugins(loaded=await asyncio.to_thread(_load, base, plugins))


def _load(base: Foundation, plugins: PluginsConfig) -> tuple[LoadedPlugin, ...]:
    from hermes.plugin.loader import load  # noqa: PLC0415 - only where plugins are enabled

    settings = {found.pop(NAME, ""): found for found in map(json.loads, plugins.settings)}
    return load(plugins.enabled, settings, base.environ)
