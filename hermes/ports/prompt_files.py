"""Approval of prompt files: the files of a project that become part of the system prompt."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from hermes.domain.prompt_file import PromptFile
from hermes.domain.types import SessionId


class PromptFiles(Protocol):
    """Paths are absolute. An empty directory is the conversation's; `root` is the first session of that.

    Without a conversation and without a default directory, a relative directory is a BadInputError.
    """

    async def found(self, root: SessionId | None, directory: str) -> tuple[PromptFile, ...]:
        """Return the prompt files in a directory as they are now."""

    async def trust(self, root: SessionId | None, directory: str, digests: Collection[str]) -> tuple[str, ...]:
        """Approve the prompt files in a directory that have these digests. Returns their paths.

        Raises BadInputError if a digest is not that of a file there: the file has changed since it was shown.
        """

    async def distrust(self, root: SessionId | None, directory: str) -> tuple[str, ...]:
        """Withdraw the approval of those in a directory. Returns their paths."""

    async def trusted(self) -> tuple[str, ...]:
        """The paths of all that are approved."""
