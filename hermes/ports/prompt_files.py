"""Approval of prompt files: the files of a project that become part of the system prompt."""

from __future__ import annotations

from typing import Protocol

from hermes.types import SessionId


class PromptFiles(Protocol):
    """Paths are absolute. An empty directory is the conversation's; `root` is the first session of that."""

    async def trust(self, root: SessionId | None, directory: str) -> tuple[str, ...]:
        """Approve the prompt files in a directory as they are now. Returns their paths."""

    async def distrust(self, root: SessionId | None, directory: str) -> tuple[str, ...]:
        """Withdraw the approval of those in a directory. Returns their paths."""

    async def trusted(self) -> tuple[str, ...]:
        """The paths of all that are approved."""
