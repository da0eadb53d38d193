"""Working directory and current directory of a conversation, and resolution of the model's paths.

The working directory is the one the owner chose for the conversation (`workdir` in its folder), else the configured
one, else the conversation's own. Guests always have their own. The terminal tool writes the current directory to
`shell.json`; the file tools use it too. All functions read the disk: call them in a thread.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from hermes.config.trust import read_workdir
from hermes.domain.access.role import Role
from hermes.domain.values import dataclass
from hermes.tools.tool import ToolError


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    default_cwd: str  # empty: each conversation has its own directory
    home: str  # value of "~"
    hermes_home: str  # Hermes' own files

    @property
    def media(self) -> str:
        """Return the directory of all received files and of copies of sent ones."""
        return os.path.join(self.hermes_home, "media")  # noqa: PTH118 - text, as the others are

    def work_of(self, folder: Path, role: Role = Role.OWNER) -> str:
        """Return the conversation's working directory. Creates the conversation's own."""
        if role is not Role.GUEST and (chosen := read_workdir(folder) or self.default_cwd):
            return chosen
        own = folder / "files"
        for each in (folder.parent, folder, own):  # `parents=True` alone would create them with the default mode
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        return str(own)

    def cwd_of(self, folder: Path, role: Role = Role.OWNER) -> str:
        """Return the conversation's current directory; initially the working directory."""
        try:
            kept = json.loads((folder / "shell.json").read_bytes())["cwd"]
        except FileNotFoundError:
            return self.work_of(folder, role)
        except (OSError, ValueError, KeyError, TypeError):  # unreadable: same as absent
            return self.work_of(folder, role)
        usable = isinstance(kept, str) and kept.startswith("/") and "\0" not in kept
        return kept if usable else self.work_of(folder, role)

    def resolve(self, folder: Path, path: str, role: Role = Role.OWNER) -> str:
        """Return the absolute path without symbolic links. The same path is judged and used."""
        if not path.strip():
            raise ToolError("The path is empty.")
        if "\0" in path:
            raise ToolError("The path contains a NUL character.")
        if path == "~" or path.startswith("~/"):
            path = self.home + path[1:]
        try:
            return os.path.realpath(os.path.join(self.cwd_of(folder, role), path))  # noqa: PTH118 - Path.resolve fails on loops
        except ValueError:
            raise ToolError("The path contains characters that are not allowed in file names.") from None

    def shown(self, folder: Path, path: str, role: Role = Role.OWNER) -> str:
        """Return the path as shown to the model: relative if it is below the current directory."""
        cwd = os.path.realpath(self.cwd_of(folder, role))
        return os.path.relpath(path, cwd) if path != cwd and Path(path).is_relative_to(cwd) else path
