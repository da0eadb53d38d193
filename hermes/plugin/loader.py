"""Loader of plugins: finds them by their entry points, and calls `register` of those that the owner enabled.

A plugin that fails is left out with its problem. The daemon and the other plugins go on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from loguru import logger

from hermes.config.platforms import PLATFORMS
from hermes.config.toolset import TOOLSETS
from hermes.domain.values import dataclass
from hermes.plugin.api import API_VERSION, PluginApi

GROUP: Final = "hermes.plugins"
_VERSION_NAME: Final = "HERMES_API"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPlugin:
    """An installed plugin. Its code has not run."""

    name: str
    package: str
    version: str
    module: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedPlugin:
    found: FoundPlugin
    problem: str = ""  # not empty: nothing of it is used
    api: PluginApi | None = field(default=None)


def installed() -> list[FoundPlugin]:
    """Return the installed plugins by name. Runs no code of them. Blocking."""
    found = (_found(each) for each in entry_points(group=GROUP))
    return sorted(found, key=lambda each: each.name)


def _found(point: EntryPoint) -> FoundPlugin:
    dist = point.dist
    return FoundPlugin(
        name=point.name,
        package="" if dist is None else dist.name,
        version="" if dist is None else dist.version,
        module=point.value,
    )


def load(
    enabled: Sequence[str], settings: Mapping[str, Mapping[str, Any]], environ: Mapping[str, str]
) -> tuple[LoadedPlugin, ...]:
    """Load the enabled plugins, in their order in the configuration. Blocking."""
    if not enabled:
        return ()
    points = {each.name: each for each in entry_points(group=GROUP)}
    loaded: list[LoadedPlugin] = []
    for name in dict.fromkeys(enabled):
        plugin = _load(name, points, settings.get(name, {}), environ)
        if not plugin.problem and (problem := _collision(plugin, loaded)):
            plugin = LoadedPlugin(found=plugin.found, problem=problem)
        if plugin.problem:
            logger.error("plugin {}: is not used: {}", name, plugin.problem)
        else:
            logger.info("plugin {}: loaded, version {}", name, plugin.found.version)
        loaded.append(plugin)
    return tuple(loaded)


def _load(
    name: str, points: Mapping[str, EntryPoint], settings: Mapping[str, Any], environ: Mapping[str, str]
) -> LoadedPlugin:
    if (point := points.get(name)) is None:
        nothing = FoundPlugin(name=name, package="", version="", module="")
        return LoadedPlugin(found=nothing, problem=f"no installed package has the entry point {name} in {GROUP}")
    found, api = _found(point), PluginApi(name, settings, environ)
    try:
        wanted = getattr(import_module(point.module), _VERSION_NAME, None)
        if wanted != API_VERSION:
            says = "does not set it" if wanted is None else f"sets {wanted!r}"
            return LoadedPlugin(
                found=found, problem=f"this Hermes has {_VERSION_NAME} = {API_VERSION}, and the plugin {says}"
            )
        point.load()(api)
    except Exception as error:  # noqa: BLE001 - code of others: the daemon starts without it
        logger.opt(exception=error).debug("plugin {}: failed", name)
        return LoadedPlugin(found=found, problem=f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
    return LoadedPlugin(found=found, api=api)


def _collision(plugin: LoadedPlugin, others: Collection[LoadedPlugin]) -> str:
    """Return which name of the plugin is taken; empty if none is."""
    assert plugin.api is not None
    before = [each.api for each in others if each.api is not None]
    tools = {tool for names in TOOLSETS.values() for tool in names} | {t.name for api in before for t in api.tools}
    platforms = {*PLATFORMS, "api", "cli", "webhook", "boot"} | {p.name for api in before for p in api.platforms}
    for tool in plugin.api.tools:
        if tool.name in tools:
            return f"the tool {tool.name} exists already"
        tools.add(tool.name)
    for platform in plugin.api.platforms:
        if platform.name in platforms:
            return f"the platform {platform.name} exists already"
        platforms.add(platform.name)
    return ""
