"""Reload of the configuration: its result, and the handler of SIGHUP."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from hermes.app.secret_files import Rewritten
from hermes.config.schema import Value
from hermes.config.settings import Config
from hermes.domain.errors import ConfigError
from hermes.domain.values import dataclass

Change: TypeAlias = tuple[Value, Value]  # from, to


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloaded:
    """Result of a reload: changes by the name of the setting."""

    applied: Mapping[str, Change]
    needs_restart: Mapping[str, Change]
    files: Rewritten = Rewritten(applied=(), needs_restart=())


class Reload:
    """Handler of SIGHUP. Signals during a reload cause one more reload; without a target they do nothing."""

    def __init__(self) -> None:
        self.target: Callable[[], Awaitable[Reloaded]] | None = None
        self._task: asyncio.Task[None] | None = None  # the loop keeps only a weak reference
        self._again = False

    def __call__(self) -> None:
        if self.target is None:
            return
        self._again = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(self.target), name="reload")

    async def _run(self, target: Callable[[], Awaitable[Reloaded]]) -> None:
        while self._again:
            self._again = False
            with suppress(ConfigError):  # is logged; a signal has no caller
                await target()


def changes(old: Config, new: Config, names: Iterable[str]) -> dict[str, Change]:
    return {name: (old.value(name), new.value(name)) for name in names}


def with_values(config: Config, new: Config, names: Iterable[str]) -> Config:
    """Return the configuration with the named settings of the new one."""
    sections: dict[str, dict[str, object]] = {}
    whole: dict[str, Any] = {}
    for name in names:
        if "." not in name:  # a section that is one value
            whole[name] = getattr(new, name)
            continue
        section, key = name.split(".")
        sections.setdefault(section, {})[key] = new.value(name)
    changed = {section: dataclasses.replace(getattr(config, section), **keys) for section, keys in sections.items()}
    return dataclasses.replace(config, **changed, **whole)
