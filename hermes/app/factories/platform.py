"""Factory entry of a chat platform: makes its adapter and checks its settings. A new platform is one entry here."""

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
    names: tuple[str, ...]  # settings that it checks; an error names the first one that is set
    look: Look


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformAssembly:
    make: Maker
    checks: tuple[Check, ...]  # run if the platform is enabled


def assembly_of(name: str) -> PlatformAssembly:
    """Return the entry of a platform. It does not import the platform's library."""
    made: PlatformAssembly = import_module(PLATFORMS[name].made_by).ASSEMBLY
    return made


def make_adapters(config: Config, environ: Mapping[str, str]) -> list[ChatAdapter]:
    """Make the adapters of the enabled platforms."""
    enabled = [name for name, settings in config.platforms().items() if settings.enabled]
    made = [assembly_of(name).make(config, environ) for name in enabled]
    return [adapter for adapter in made if adapter is not None]
