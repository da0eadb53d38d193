"""What makes a chat platform's adapter from its settings, looked up by the platform's entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TypeAlias

from hermes.config.platforms import PLATFORMS
from hermes.config.settings import Config
from hermes.domain.values import dataclass
from hermes.ports.chat import ChatAdapter

Maker: TypeAlias = Callable[[Config, Mapping[str, str]], ChatAdapter | None]  # None when it is not enabled
Look: TypeAlias = Callable[[Config, Mapping[str, str]], object]  # raises ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    names: tuple[str, ...]  # what it is about: the first of these settings that was set says where
    look: Look


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformAssembly:
    make: Maker
    checks: tuple[Check, ...]  # of what it takes, where it is enabled


def assemblies() -> dict[str, PlatformAssembly]:
    """Of every platform. None of this imports a platform's own library."""
    return {name: import_module(entry.made_by).ASSEMBLY for name, entry in PLATFORMS.items()}
