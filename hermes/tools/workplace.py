"""Where a conversation's work takes place: its current directory, and how a path that the model gives is understood.

The shell tool writes `shell.json` into the conversation's folder when its directory changes; the file tools follow.
All of this looks at the disk: call it in a thread.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from hermes.tools.tool import ToolError
from hermes.trust import read_workdir
from hermes.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    default_cwd: str
    home: str  # what "~" means
    hermes_home: str  # Hermes' own files

    def cwd_of(self, folder: Path) -> str:
        """Return the directory that the conversation is in: where its shell went, was told to begin, or begins."""
        try:
            kept = json.loads((folder / "shell.json").read_bytes())["cwd"]
        except FileNotFoundError:
            return read_workdir(folder) or self.default_cwd
        except (OSError, ValueError, KeyError, TypeError):  # not as the shell writes it: as good as none
            return self.default_cwd
        return kept if isinstance(kept, str) and kept.startswith("/") and "\0" not in kept else self.default_cwd

    def resolve(self, folder: Path, path: str) -> str:
        """The absolute path without any symbolic link in it: what is judged is what is used."""
        if not path.strip():
            raise ToolError("the path is empty")
        if "\0" in path:
            raise ToolError("the path holds a NUL character, which no file name can have")
        if path == "~" or path.startswith("~/"):
            path = self.home + path[1:]
        try:
            return os.path.realpath(os.path.join(self.cwd_of(folder), path))  # noqa: PTH118 - Path.resolve fails on loops
        except ValueError:
            raise ToolError("the path holds characters that no file name can have") from None

    def shown(self, folder: Path, path: str) -> str:
        """The path as the model would write it: relative when it is below the current directory."""
        cwd = os.path.realpath(self.cwd_of(folder))
        return os.path.relpath(path, cwd) if path != cwd and Path(path).is_relative_to(cwd) else path
