"""Files that a command line writes and may run later."""

from __future__ import annotations

import posixpath
import re
from itertools import pairwise

from hermes.shell_policy.bash.simple_command import SimpleCommand, interprets
from hermes.shell_policy.bash.syntax import UNKNOWN
from hermes.shell_policy.bash.wrapper import SHELLS


class ShellFiles:
    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._copies: dict[str, str] = {}  # other names that are given to programs

    def text_of(self, cwd: str, name: str) -> str | None:
        return self._texts.get(_path(cwd, name))

    def original_of(self, cwd: str, name: str) -> str | None:
        return self._copies.get(_path(cwd, name))

    def redirected(self, command: SimpleCommand, printed: str | None) -> None:
        """Note the redirections of a command. `printed`: its output, if known."""
        for redirection in command.redirections:
            if redirection.operator in {">", ">|", ">>", "&>", "&>>", "<>", ">&"}:
                self._texts[_path(command.cwd, redirection.target)] = UNKNOWN if printed is None else printed

    def made_by(self, command: SimpleCommand) -> None:
        """Note the files that a command creates, as far as its arguments show."""
        argv = command.argv
        if command.name == "tee":
            for argument in argv[1:]:
                self._texts[_path(command.cwd, argument)] = UNKNOWN if command.stdin is None else command.stdin
        if command.name in {"mv", "cp", "ln", "install"} and len(argv) > 2:
            source = _path(command.cwd, argv[-2])
            if (known := self._texts.get(source)) is not None:
                self._texts[_path(command.cwd, argv[-1])] = known
            elif re.search(r"/s?bin/[^/]+\Z", source) or UNKNOWN in source or "/" not in argv[-2]:
                self._copies[_path(command.cwd, argv[-1])] = argv[-2]
        if command.name in {"curl", "wget", "aria2c", "fetch", "base64", "openssl", "xxd", "gpg"}:
            for option, following in pairwise(argv):
                if re.fullmatch(r"-[a-zA-Z]*[oO]|--output|--output-document|-out", option):
                    self._texts[_path(command.cwd, following)] = UNKNOWN
            for argument in argv[1:]:
                if "://" in argument:
                    self._texts[_path(command.cwd, argument.rpartition("/")[2])] = UNKNOWN

    def run_by(self, command: SimpleCommand) -> str | None:
        """Return the text of a written file that the command runs; UNKNOWN if its content is not known."""
        if not command.argv or not self._texts:
            return None
        places = [each for each in command.argv[1:] if not each.startswith("-")][:2]
        runs_argument = command.name in SHELLS or command.name in {"source", "."} or interprets(command.name)
        named = places if runs_argument else [command.argv[0]] if "/" in command.argv[0] else []
        return next((text for each in named if (text := self._texts.get(_path(command.cwd, each))) is not None), None)


def _path(cwd: str, name: str) -> str:
    return posixpath.normpath(posixpath.join(cwd, name))
