"""Where a conversation works: its working directory, its current directory, and how a path from the model is read.

The working directory is the one that the owner chose for the conversation (`workdir` in its folder), else the
configured one, else the conversation's own. Guests always have their own. The shell tool writes `shell.json` when its
current directory changes; the file tools follow. All of this looks at the disk: call it in a thread.
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
    default_cwd: str  # empty: each conversation has a directory of its own
    home: str  # what "~" means
    hermes_home: str  # Hermes' own files

    @property
    def media(self) -> str:
        """The files that people sent to any conversation, and copies of those sent to them."""
        return os.path.join(self.hermes_home, "media")  # noqa: PTH118 - text, as the others are

    def work_of(self, folder: Path, role: Role = Role.OWNER) -> str:
        """The conversation's working directory. Its own is made here."""
        if role is not Role.GUEST and (chosen := read_workdir(folder) or self.default_cwd):
            return chosen
        own = folder / "files"
        for each in (folder.parent, folder, own):  # `parents` would make them with the usual mode
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        return str(own)

    def cwd_of(self, folder: Path, role: Role = Role.OWNER) -> str:
        """The directory that the conversation is in; its working directory until its shell has been elsewhere."""
        try:
            kept = json.loads((folder / "shell.json").read_bytes())["cwd"]
        except FileNotFoundError:
            return self.work_of(folder, role)
        except (OSError, ValueError, KeyError, TypeError):  # not as the shell writes it: as good as none
            return self.work_of(folder, role)
        usable = isinstance(kept, str) and kept.startswith("/") and "\0" not in kept
        return kept if usable else self.work_of(folder, role)

    def resolve(self, folder: Path, path: str, role: Role = Role.OWNER) -> str:
        """The absolute path without any symbolic link in it: what is judged is what is used."""
        if not path.strip():
            raise ToolError("the path is empty")
        if "\0" in path:
            raise ToolError("the path holds a NUL character, which no file name can have")
        if path == "~" or path.startswith("~/"):
            path = self.home + path[1:]
        try:
            return os.path.realpath(os.path.join(self.cwd_of(folder, role), path))  # noqa: PTH118 - Path.resolve fails on loops
        except ValueError:
            raise ToolError("the path holds characters that no file name can have") from None

    def shown(self, folder: Path, path: str, role: Role = Role.OWNER) -> str:
        """The path as the model would write it: relative when it is below the current directory."""
        cwd = os.path.realpath(self.cwd_of(folder, role))
        return os.path.relpath(path, cwd) if path != cwd and Path(path).is_relative_to(cwd) else path
