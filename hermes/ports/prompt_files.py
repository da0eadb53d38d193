"""Approval of prompt files: the files of a project that become part of the system prompt."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from hermes.domain.access.prompt_file import PromptFile
from hermes.domain.ids import SessionId


class PromptFiles(Protocol):
    """Reads and approves prompt files. Paths are absolute.

    An empty directory means that of the conversation whose first session is `root`. Raises BadInputError for a
    relative directory if there is neither a conversation nor a default directory.
    """

    async def found(self, root: SessionId | None, directory: str) -> tuple[PromptFile, ...]:
        """Return the prompt files that are now in a directory."""

    async def trust(self, root: SessionId | None, directory: str, digests: Collection[str]) -> tuple[str, ...]:
        """Approve the prompt files with these digests. Returns their paths.

        Raises BadInputError if a digest matches no file there: the file has changed since it was shown.
        """

    async def distrust(self, root: SessionId | None, directory: str) -> tuple[str, ...]:
        """Withdraw the approval of the files in a directory. Returns their paths."""

    async def trusted(self) -> tuple[str, ...]:
        """Return the paths of all approved files."""
