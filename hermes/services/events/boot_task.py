"""BOOT.md: a task of the owner that runs once at each start, as a session of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from loguru import logger

from hermes.config.tool_choice import tools_of
from hermes.domain.access.role import Role
from hermes.domain.child.child import ChildDuty, Purpose, child_id
from hermes.domain.errors import HermesError
from hermes.domain.source import Source
from hermes.domain.values import dataclass
from hermes.ports.children import ChildRequests
from hermes.ports.given import Clock
from hermes.services.events.event_run import EventRun
from hermes.system.regular_file import read_regular_file

FILE: Final = "BOOT.md"
PLATFORM: Final = "boot"
_MAX_BYTES: Final = 65_536
_OPENING: Final = (
    "The daemon has started. Do what the owner wrote below in BOOT.md. Nobody reads along or answers questions. Your "
    "last message is the report: keep it short. Answer only [SILENT] if there is nothing to report."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BootSettings:
    enabled: bool
    deliver: tuple[str, ...]
    toolset: tuple[str, ...]
    model: str
    max_steps: int
    max_tokens: int


class BootTask:
    def __init__(
        self, path: Path, settings: BootSettings, *, children: ChildRequests, clock: Clock, epoch: int
    ) -> None:
        self._path = path
        self._settings = settings
        self._children = children
        self._clock = clock
        self._epoch = epoch

    async def start(self) -> bool:
        """Start the run of this boot, if there is a BOOT.md. A boot has one run, also when this is called again."""
        if not self._settings.enabled:
            return False
        try:
            text = await asyncio.to_thread(self._read)
            return bool(text) and await self._children.request(self._duty(text))
        except (OSError, HermesError) as error:
            logger.error("boot: {} was not run: {}", FILE, error)
            return False

    def _read(self) -> str:
        try:
            raw = read_regular_file(self._path, max_bytes=_MAX_BYTES)
        except FileNotFoundError:
            return ""
        if len(raw) > _MAX_BYTES:
            raise OSError(f"it is larger than {_MAX_BYTES} bytes")
        return raw.decode("utf-8", "replace").strip()

    def _duty(self, text: str) -> ChildDuty:
        settings, key = self._settings, f"{PLATFORM}:{self._epoch}"
        run = EventRun(
            title=FILE,
            prompt=f"{_OPENING}\n\n{text}",
            deliver=settings.deliver,
            tools=tuple(dict.fromkeys(tool for name in settings.toolset for tool in tools_of(name))),
            model=settings.model,
            max_steps=settings.max_steps,
            max_tokens=settings.max_tokens,
            boot=self._epoch,
        )
        return ChildDuty(
            key=key,
            child=child_id(key, self._clock()),
            purpose=Purpose.BOOT,
            source=Source(platform=PLATFORM, automatic=True, role=Role.OWNER),
            work=run.encoded(),
        )
