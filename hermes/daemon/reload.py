"""A reload of the configuration: what comes of it, and how a signal asks for one."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from hermes.errors import ConfigError
from hermes.settings import Config
from hermes.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloaded:
    applied: tuple[str, ...]  # names of settings
    needs_restart: tuple[str, ...]


class Reload:
    """What SIGHUP does: nothing until there is something to reload."""

    def __init__(self) -> None:
        self.target: Callable[[], Awaitable[Reloaded]] | None = None
        self._tasks: set[asyncio.Task[None]] = set()  # held, or nobody would finish them

    def __call__(self) -> None:
        if self.target is not None:
            task = asyncio.get_running_loop().create_task(_finish(self.target), name="reload")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


async def _finish(target: Callable[[], Awaitable[Reloaded]]) -> None:
    with suppress(ConfigError):  # the log has it: a signal has nobody to tell
        await target()


def with_values(config: Config, new: Config, names: Iterable[str]) -> Config:
    """The configuration, with those settings as the new one has them."""
    sections: dict[str, dict[str, object]] = {}
    for name in names:
        section, key = name.split(".")
        sections.setdefault(section, {})[key] = new.value(name)
    changed = {section: dataclasses.replace(getattr(config, section), **keys) for section, keys in sections.items()}
    return dataclasses.replace(config, **changed)
