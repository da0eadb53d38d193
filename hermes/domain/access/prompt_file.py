"""A prompt file of a project as it is now: path, digest and content."""

from __future__ import annotations

import hashlib

from hermes.domain.text.visible_text import visible
from hermes.domain.values import dataclass

DIGEST_CHARS = 16  # of a SHA-256 in hex, as people are shown it


SHOWN_CHARS = 2_000  # of a file's content, before it is approved


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFile:
    """A prompt file as it was read: what a person is shown before they approve it."""

    path: str  # absolute, without links
    content: bytes

    @property
    def sha256(self) -> str:
        return digest_of(self.content)

    @property
    def digest(self) -> str:
        return self.sha256[:DIGEST_CHARS]

    def shown(self) -> str:
        """Return path, size, digest and content, with hidden characters as escapes."""
        text = self.content.decode(errors="replace")
        left = len(text) - SHOWN_CHARS
        lines = [
            f"{visible(self.path)}: {len(self.content):,} bytes, digest {self.digest}",
            "-----",
            visible(text[:SHOWN_CHARS].rstrip()),
            "-----",
        ]
        if left > 0:
            lines.append(
                f"This is cut: {left:,} more characters are in the file. Read the rest in {visible(self.path)}."
            )
        return "\n".join(lines)


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
