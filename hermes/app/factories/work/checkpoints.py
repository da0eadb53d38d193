"""Factory of checkpoints: for the tools that change files, and for `/rollback`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from loguru import logger

from hermes.agent.tool_step import Folders
from hermes.config.home import Home
from hermes.config.settings import Config
from hermes.domain.access.role import Role
from hermes.domain.checkpoint import Checkpoint, Rollback, takes_checkpoint
from hermes.domain.errors import BadInputError
from hermes.domain.ids import SessionId
from hermes.ports.given import Clock

if TYPE_CHECKING:
    from hermes.tools.checkpoint.checkpoints import Checkpoints
    from hermes.tools.tool import ToolContext

T = TypeVar("T")


class CheckpointBook:
    """Checkpoints of all conversations. It is loaded with the first use."""

    def __init__(self, config: Config, home: Home, folders: Folders, clock: Clock) -> None:
        self._config = config
        self._home = home
        self._folders = folders
        self._clock = clock
        self._made: Checkpoints | None = None

    async def before(self, tool: str, context: ToolContext) -> None:
        """Take a checkpoint before a call that changes files."""
        given = self._config.checkpoints
        if given.enabled and takes_checkpoint(tool, commands=given.commands):
            await asyncio.to_thread(self._take, tool, context)

    async def listed(self, root: SessionId, role: Role) -> list[Checkpoint]:
        from hermes.tools.checkpoint.checkpoints import listed  # noqa: PLC0415 - with the first use

        return await self._call(lambda: listed(self._folders.path(root, role)))

    async def compare(self, root: SessionId, role: Role, number: int) -> Rollback:
        return await self._call(lambda: self._checkpoints().compare(self._folders.path(root, role), number))

    async def restore(self, root: SessionId, role: Role, number: int) -> Rollback:
        return await self._call(lambda: self._checkpoints().restore(self._folders.path(root, role), number))

    async def _call(self, call: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(call)
        except (OSError, ValueError) as error:
            raise BadInputError(f"the checkpoints cannot be used: {error}", code="checkpoint_failed") from error

    def _take(self, tool: str, context: ToolContext) -> None:
        try:
            checkpoints = self._checkpoints()
        except OSError as error:  # its modules are loaded now, and no descriptor may be left
            logger.warning("session {}: no checkpoint before {}: {}", context.session, tool, error)
        else:
            checkpoints.before(tool, context)

    def _checkpoints(self) -> Checkpoints:
        if self._made is None:
            from hermes.app.factories.turn_environment import workplace_of  # noqa: PLC0415
            from hermes.tools.checkpoint.checkpoints import Checkpoints, CheckpointSettings  # noqa: PLC0415
            from hermes.tools.checkpoint.snapshot import SnapshotLimits  # noqa: PLC0415

            given = self._config.checkpoints
            settings = CheckpointSettings(
                max_snapshots=given.max_snapshots,
                max_bytes=given.max_total_mb << 20,
                limits=SnapshotLimits(
                    files=given.max_files, file_bytes=given.max_file_mb << 20, total_bytes=given.max_total_mb << 19
                ),
            )
            workplace = workplace_of(self._config, self._home)
            self._made = Checkpoints(settings, work_of=workplace.work_of, clock=self._clock)
        return self._made
