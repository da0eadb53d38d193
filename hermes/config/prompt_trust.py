"""Approvals of prompt files such as `AGENTS.md`: path and SHA-256 of each file that the owner trusts.

They are stored in `trusted_prompts.json` of the data directory, which no tool can write. A file that changes loses
its approval. A file of approvals that cannot be read approves nothing. All functions block.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path

from hermes.domain.access.prompt_file import DIGEST_CHARS, PromptFile, digest_of
from hermes.domain.errors import BadInputError
from hermes.domain.values import dataclass
from hermes.system.durable_file import replace_file

FILE_NAME = "trusted_prompts.json"
CHANGED = "prompt_file_changed"  # error code
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedPrompt:
    path: str  # absolute, without links
    sha256: str

    @property
    def is_current(self) -> bool:
        """Return whether the file still has the approved content."""
        try:
            return digest_of(Path(self.path).read_bytes()) == self.sha256
        except OSError:
            return False


def chosen(files: Sequence[PromptFile], digests: Collection[str]) -> tuple[PromptFile, ...]:
    """Return the files that have these digests. Raises BadInputError for a digest that no file has now."""
    for digest in digests:
        if len(digest) < DIGEST_CHARS or not any(each.sha256.startswith(digest) for each in files):
            raise BadInputError(
                f"no prompt file there has the digest {digest[:64]}. Nothing was approved; show the files again",
                code=CHANGED,
            )
    return tuple(each for each in files if any(each.sha256.startswith(digest) for digest in digests))


class TrustedPrompts:
    def __init__(self, data_dir: Path) -> None:
        self._file = data_dir / FILE_NAME

    def all(self) -> tuple[TrustedPrompt, ...]:
        return tuple(TrustedPrompt(path=path, sha256=sha256) for path, sha256 in sorted(self._read().items()))

    def holds(self, path: Path, content: bytes) -> bool:
        """Return whether this content of the file is approved."""
        return self._read().get(str(path)) == digest_of(content)

    def add(self, path: Path, content: bytes) -> TrustedPrompt:
        """Approve this content of the file. If the file has changed meanwhile, its new content is not approved."""
        added = TrustedPrompt(path=str(path), sha256=digest_of(content))
        self._write({**self._read(), added.path: added.sha256})
        return added

    def remove(self, directory: Path) -> tuple[TrustedPrompt, ...]:
        """Withdraw the approval of a file, or of all files directly in a directory. Returns those withdrawn."""
        removed = tuple(each for each in self.all() if directory in (Path(each.path), Path(each.path).parent))
        if removed:
            gone = {each.path for each in removed}
            self._write({path: sha256 for path, sha256 in self._read().items() if path not in gone})
        return removed

    def _read(self) -> dict[str, str]:
        try:
            found = json.loads(self._file.read_bytes())["trusted"]
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        if not isinstance(found, dict):
            return {}
        return {path: sha256 for path, sha256 in found.items() if isinstance(sha256, str)}

    def _write(self, trusted: dict[str, str]) -> None:
        text = json.dumps({"version": _VERSION, "trusted": trusted}, indent=1, sort_keys=True)
        replace_file(self._file, text + "\n")
