"""Choice of tools by the settings of the section `tools`: which surface has which tools, and its changes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.config.toolset import TOOLSETS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from hermes.config.schema import Value
    from hermes.config.settings import ToolsConfig

_RISKY = ("terminal", "file", "process")
SURFACES = ("default", "api", "cli", "guest")  # settings with a list of tools


def tools_of(name: str) -> tuple[str, ...]:
    """Return the tools of a toolset, or the tool itself."""
    return TOOLSETS.get(name, (name,))


def chosen(config: ToolsConfig, surface: str) -> set[str]:
    """Return the tools that a surface has."""
    return _expanded(_listed(config, surface)) - _expanded(config.disabled)


def _listed(config: ToolsConfig, surface: str) -> tuple[str, ...]:
    found: tuple[str, ...] = getattr(config, surface)
    return found


def _expanded(names: Collection[str]) -> set[str]:
    return {tool for name in names for tool in tools_of(name)}


def is_off_everywhere(config: ToolsConfig, name: str) -> bool:
    """Return whether `tools.disabled` turns off one of these tools on every surface."""
    return not _expanded(config.disabled).isdisjoint(tools_of(name))


def is_risky_for_guests(name: str) -> bool:
    """Return whether these tools give a guest access to commands or files of this machine."""
    return not _expanded(_RISKY).isdisjoint(tools_of(name))


def enabling(config: ToolsConfig, name: str, surface: str) -> Mapping[str, Value]:
    """Return the settings to change so that a surface has these tools; without one, every surface that lists them."""
    changes: dict[str, Value] = {}
    disabled = _without(config.disabled, name)
    if disabled != config.disabled:
        changes["tools.disabled"] = disabled
    wanted = set(tools_of(name))
    if surface:
        surfaces = [surface]
    else:  # listed nowhere: the ordinary surfaces
        surfaces = [] if any(wanted <= _expanded(_listed(config, each)) for each in SURFACES) else ["default"]
    for each in surfaces:
        if not wanted <= _expanded(_listed(config, each)):
            changes[f"tools.{each}"] = (*_listed(config, each), name)
    return changes


def disabling(config: ToolsConfig, name: str, surface: str) -> Mapping[str, Value]:
    """Return the settings to change so that a surface lacks these tools; without one, every surface."""
    if surface:
        listed = _listed(config, surface)
        left = _without(listed, name)
        return {f"tools.{surface}": left} if left != listed else {}
    if set(tools_of(name)) <= _expanded(config.disabled):
        return {}
    return {"tools.disabled": (*config.disabled, name)}


def _without(names: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the names without these tools. A toolset that keeps other tools is replaced by those."""
    gone, left = set(tools_of(name)), list[str]()
    for each in names:
        tools = tools_of(each)
        left += [each] if gone.isdisjoint(tools) else [tool for tool in tools if tool not in gone]
    return tuple(left)
