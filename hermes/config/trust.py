"""Directories that the owner trusts, and the working directory of a conversation.

The agent works in the directory of `hermes chat` only if the owner has trusted it, once for each directory. The
answers are stored in `trusted_directories.json` in Hermes' data directory, the directory of a conversation in its
folder, so that it survives restarts. Reading and writing blocks: call it in a thread.
"""

from __future__ import annotations

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes.domain.errors import BadInputError
from hermes.domain.values import dataclass
from hermes.system.durable_file import replace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hermes.domain.ids import SessionId

TRUST_FILE: Final = "trusted_directories.json"
_WORKDIR: Final = "workdir"
_SHELL_STATE: Final = "shell.json"  # exists once the conversation has used its shell
_SIZE_MAX: Final = 1 << 20


class Unfit(StrEnum):
    """Reasons why an agent never works in a directory, trusted or not."""

    ROOT = "root"  # the root directory
    HOME = "home"  # contains the home directory of the user
    HERMES = "hermes"  # contains Hermes' own directories, or is inside one
    NAME = "name"  # its name is not valid UTF-8


_UNFIT_TEXTS: Final = {
    Unfit.ROOT: "it is the root directory",
    Unfit.HOME: "it contains your home directory",
    Unfit.HERMES: "it contains Hermes' own files, or is inside their directory",
    Unfit.NAME: "its name is not valid UTF-8",
}


def unfit(directory: Path, *, person: Path, own: Iterable[Path]) -> Unfit | None:
    """Return why the agent must not work here. The path is absolute, without links; `own` are Hermes' directories."""
    if directory == Path("/"):
        return Unfit.ROOT
    if person.is_relative_to(directory):
        return Unfit.HOME
    if any(each.is_relative_to(directory) or directory.is_relative_to(each) for each in own):
        return Unfit.HERMES
    try:
        str(directory).encode()
    except UnicodeEncodeError:
        return Unfit.NAME
    return None


def explain_unfit(reason: Unfit) -> str:
    return _UNFIT_TEXTS[reason]


def home_directory() -> Path:
    return Path(os.path.realpath(os.path.expanduser("~")))  # noqa: PTH111 - unlike pathlib, never raises


# ---------------------------------------------------------------- answers of the owner


def read_answers(data_dir: Path) -> dict[str, bool]:
    """Return the owner's answer for each directory. A file that cannot be used holds none."""
    try:
        stored = json.loads((data_dir / TRUST_FILE).read_bytes())["directories"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    if not isinstance(stored, dict):
        return {}
    return {name: answer for name, answer in stored.items() if isinstance(answer, bool)}


def remember_answer(data_dir: Path, directory: Path, *, trusted: bool) -> None:
    answers = read_answers(data_dir) | {str(directory): trusted}
    replace_file(data_dir / TRUST_FILE, json.dumps({"directories": answers}, indent=2) + "\n")


def forget_answer(data_dir: Path, directory: Path) -> bool | None:
    """Forget the owner's answer for a directory, and return it. `hermes chat` asks again there."""
    answers = read_answers(data_dir)
    forgotten = answers.pop(str(directory), None)
    if forgotten is not None:
        replace_file(data_dir / TRUST_FILE, json.dumps({"directories": answers}, indent=2) + "\n")
    return forgotten


# ---------------------------------------------------------------- the directory of a conversation


def read_workdir(folder: Path) -> str | None:
    """Return the working directory that was chosen for a conversation, by its folder; None if none was."""
    try:
        with (folder / _WORKDIR).open("rb") as file:
            text = file.read(_SIZE_MAX).decode()
    except (OSError, UnicodeDecodeError):
        return None
    return text if text.startswith("/") and "\0" not in text else None


def write_workdir(folder: Path, path: str) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(folder / _WORKDIR, path)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingDirectories:
    """Sets the working directories of conversations."""

    folder_of: Callable[[SessionId], Path]
    own: tuple[Path, ...]  # Hermes' own directories

    def choose(self, root: SessionId, path: str) -> str | None:
        """Let a conversation that has not worked anywhere yet work in this directory; return where it works.

        `root` is the first session of its lineage. None is returned for one that works in the default directory.
        """
        folder = self.folder_of(root)
        if (folder / _WORKDIR).exists() or (folder / _SHELL_STATE).exists():
            return read_workdir(folder)
        directory = Path(os.path.realpath(path))
        if not directory.is_dir():
            raise BadInputError(f"{directory} is not a directory.", param="path")
        if reason := unfit(directory, person=home_directory(), own=self.own):
            raise BadInputError(f"{directory} cannot be a working directory: {explain_unfit(reason)}.", param="path")
        write_workdir(folder, str(directory))
        return str(directory)
