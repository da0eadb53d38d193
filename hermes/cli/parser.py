"""Declaration of commands and their arguments.

Neither this module nor the top of a command's module imports anything slow.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeAlias

from hermes.system.late_module import imported_late

with imported_late("bz2", "lzma"):  # argparse imports shutil, and no command needs these two: 2 ms, and 0.3 MB
    import shutil  # noqa: F401

CHILDREN = "also child sessions, which another session or the daemon started"
ANY_ID = "id of the session or of a predecessor, or its first characters; - is the last active session"
# Completion of a session id in each shell, in shtab's format.
SESSION_COMPLETION = {
    "bash": "_hermes_sessions",
    "zsh": "($(hermes __complete sessions 2>/dev/null))",
    "fish": "(hermes __complete sessions 2>/dev/null)",
}
# Completion of a file name: copied from shtab, because importing shtab is slow.
FILE_COMPLETION = {
    "bash": "_shtab_compgen_files",
    "zsh": "_files",
    "fish": "(__fish_complete_path (commandline -ct))",
}
COMPLETION_PREAMBLE = {
    "bash": '_hermes_sessions() { compgen -W "$(hermes __complete sessions 2>/dev/null)" -- "$1"; }',
}

Run: TypeAlias = Callable[[argparse.Namespace, Mapping[str, str]], int]


class ArgumentParser(argparse.ArgumentParser):
    """Parser that reports an error in one line, like all other errors of the command line."""

    def error(self, message: str) -> NoReturn:
        print(f"hermes: {_reworded(message, self.prog)} (see `{self.prog} --help`)", file=sys.stderr)
        sys.exit(2)


class Help(argparse.HelpFormatter):
    """Help formatter that wraps prose and keeps indented lines as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        from functools import partial
        from itertools import groupby
        from textwrap import fill

        parts: list[str] = []
        for is_prose, lines in groupby(text.splitlines(), lambda line: bool(line) and not line.startswith(" ")):
            found = list(lines)
            filled = partial(fill, width=width, break_long_words=False, break_on_hyphens=False)
            parts += [filled(" ".join(found))] if is_prose else found
        return "\n".join(f"{indent}{part}" for part in parts)


def _reworded(message: str, prog: str) -> str:
    """Return an error of argparse, with a suggestion for an unknown command or option."""
    from hermes.cli.suggestion import MEANINGS, answer_to

    parent = prog.partition(" ")[2]
    unknown = re.match(r"argument COMMAND: invalid choice: '(.*)' \(choose from (.*)\)", message, re.DOTALL)
    if unknown is not None:
        answer = answer_to(unknown[1], parent, re.findall(r"[a-z-]+", unknown[2]))
        return f"there is no command {unknown[1]!r}" + (f"; {answer}" if answer else "")
    if message.startswith("the following arguments are required") and message.endswith("SESSION"):
        return f"{message}; - is the last active one"
    left_over = re.match(r"unrecognized arguments: (\S+)", message)
    meaning = MEANINGS.get(f"{parent} {left_over[1]}".strip()) if left_over else None
    return f"{message}; {meaning}" if meaning else message


def session_id(text: str) -> str:
    """Refuse an empty id: `hermes stop ''` in a script must not stop the daemon."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the session id is empty; `hermes sessions` lists ids")
    return text


def positive(text: str) -> int:
    return whole(text, least=1)


def whole(text: str, *, least: int = 0) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, found {text[:40]!r}")
    return int(text)


def seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of seconds, found {text[:40]!r}")
    return number


def add_session(parser: ArgumentParser, *flags: str, help: str = ANY_ID, nargs: str | None = None) -> None:  # noqa: A002
    """Add an argument for a session id, with completion."""
    names: dict[str, Any] = {"dest": "resume"} if flags else {}
    if nargs is not None:
        names["nargs"] = nargs
    if flags and nargs == "?":  # the flag alone means the last active session
        names["const"] = "-"
    argument = parser.add_argument(*(flags or ("session",)), type=session_id, metavar="SESSION", help=help, **names)
    setattr(argument, "complete", SESSION_COMPLETION)  # noqa: B010 - read by shtab, unknown to argparse


def add_file(parser: ArgumentParser, *names: str, **options: Any) -> None:
    """Add an argument for a file name, with completion."""
    setattr(parser.add_argument(*names, **options), "complete", FILE_COMPLETION)  # noqa: B010


class Commands:
    """Commands of a parser, or subcommands of a command."""

    def __init__(self, parser: ArgumentParser, *, required: bool = True) -> None:
        self._actions = parser.add_subparsers(metavar="COMMAND", title="commands", parser_class=ArgumentParser)
        if required:
            parser.set_defaults(run=lambda _args, _environ: parser.error(f"name a command: {', '.join(self._names)}"))
        self._names: list[str] = []

    def add(self, name: str, run: Run, about: str, *, examples: str = "", json: bool = False) -> ArgumentParser:
        """Add a command. `about` is its description; the first sentence is also its line in the overview."""
        parser = self._actions.add_parser(
            name,
            help=f"{about[0].lower()}{about[1:]}".partition(". ")[0].removesuffix("."),
            description=about,
            epilog=f"examples:\n{examples}" if examples else None,
            formatter_class=Help,
        )
        self._names.append(name)
        if json:
            # No default: that of a subcommand would overwrite the value given before it.
            parser.add_argument(
                "--json", action="store_true", default=argparse.SUPPRESS, help="print JSON for scripts"
            )
        parser.set_defaults(run=run, usage_error=parser.error)
        return parser
