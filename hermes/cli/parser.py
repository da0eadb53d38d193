"""How commands are declared. Nothing here, nor at the top of a command's file, may import what is slow."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import NoReturn, TypeAlias

Run: TypeAlias = Callable[[argparse.Namespace, Mapping[str, str]], int]


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, like every other error of the command line."""

    def error(self, message: str) -> NoReturn:
        print(f"hermes: {message} (`{self.prog} --help` shows how)", file=sys.stderr)
        sys.exit(2)


def session_id(text: str) -> str:
    """An argument that a script left empty must not mean "none was given": `hermes stop ''` would stop the daemon."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the session id is empty; `hermes ps --sessions` lists them")
    return text


def positive(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, found {text[:40]!r}")
    return int(text)


class Commands:
    """A parser's commands, or a command's own commands."""

    def __init__(self, parser: Parser, *, required: bool = True) -> None:
        self._actions = parser.add_subparsers(
            metavar="COMMAND", title="commands", parser_class=Parser, required=required
        )

    def add(self, name: str, run: Run, about: str, *, examples: str = "", json: bool = False) -> Parser:
        """A new command: `about` heads its help, and its first sentence is the line in the overview."""
        parser = self._actions.add_parser(
            name,
            help=f"{about[0].lower()}{about[1:]}".partition(".")[0],
            description=about,
            epilog=f"examples:\n{examples}" if examples else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if json:
            # Without a default of its own: a command's command would reset what was given before it.
            parser.add_argument(
                "--json", action="store_true", default=argparse.SUPPRESS, help="print JSON for scripts"
            )
        parser.set_defaults(run=run, usage_error=parser.error)
        return parser
