"""Approval of prompt files for the command `/trust`: finds the conversation's directory and calls the store."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection
from pathlib import Path

from hermes.agent.context_files import prompt_files
from hermes.agent.tool_step import Folders
from hermes.config.home import Home
from hermes.config.prompt_trust import TrustedPrompts, chosen
from hermes.config.settings import Config
from hermes.domain.access.prompt_file import PromptFile
from hermes.domain.errors import BadInputError
from hermes.domain.ids import SessionId
from hermes.ports.prompt_files import PromptFiles


class TrustedPromptFiles(PromptFiles):
    def __init__(self, config: Config, home: Home, folders: Folders) -> None:
        self._config = config
        self._home = home
        self._folders = folders
        self._store = TrustedPrompts(home.data_dir)

    async def found(self, root: SessionId | None, directory: str) -> tuple[PromptFile, ...]:
        return await asyncio.to_thread(self._found, root, directory)

    async def trust(self, root: SessionId | None, directory: str, digests: Collection[str]) -> tuple[str, ...]:
        return await asyncio.to_thread(self._trust, root, directory, digests)

    async def distrust(self, root: SessionId | None, directory: str) -> tuple[str, ...]:
        return await asyncio.to_thread(self._distrust, root, directory)

    async def trusted(self) -> tuple[str, ...]:
        return tuple(each.path for each in await asyncio.to_thread(self._store.all))

    def _found(self, root: SessionId | None, directory: str) -> tuple[PromptFile, ...]:
        found = prompt_files(self._directory(root, directory), person_home=Path(os.path.expanduser("~")))  # noqa: PTH111
        return tuple(PromptFile(path=str(path), content=content) for path, content in found)

    def _trust(self, root: SessionId | None, directory: str, digests: Collection[str]) -> tuple[str, ...]:
        files = chosen(self._found(root, directory), digests)
        return tuple(self._store.add(Path(each.path), each.content).path for each in files)

    def _distrust(self, root: SessionId | None, directory: str) -> tuple[str, ...]:
        return tuple(each.path for each in self._store.remove(self._directory(root, directory)))

    def _directory(self, root: SessionId | None, directory: str) -> Path:
        from hermes.app.factories.turn_environment import workplace_of  # noqa: PLC0415 - slow: only a thread imports it

        workplace = workplace_of(self._config, self._home)
        cwd = workplace.default_cwd if root is None else workplace.cwd_of(self._folders.path(root))
        if not Path(cwd, os.path.expanduser(directory)).is_absolute():  # noqa: PTH111 - never raises
            raise BadInputError("no conversation has begun here, so name the directory: /trust DIRECTORY")
        return Path(os.path.realpath(Path(cwd, os.path.expanduser(directory))))  # noqa: PTH111 - never raises
