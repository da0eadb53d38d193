"""`hermes memory`: show and edit notes, their history, and changes that wait for an approval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.output import moment, print_json, print_text, printable
from hermes.cli.parser import Commands, whole

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.cli.parser import ArgumentParser, Run

_FIELDS = ("person", "target", "number", "content", "old_text")
_MANY = 1_000_000
_MAX_DIGITS = 9


def add_commands(commands: Commands) -> None:
    group = commands.add(
        "memory",
        _asking("show"),
        "Manage memory: notes that every conversation begins with.",
        examples="  hermes memory show\n  hermes memory log --target user\n  hermes memory revert\n"
        "  hermes memory show --person telegram:12345",
        json=True,
    )
    actions = Commands(group, required=False)
    _verb(actions, "show", "Show the notes with their sizes and files.")
    _add_edits(actions)
    _targeted(_verb(actions, "log", "Show all changes: who made them, when, and in which session."))
    diff = _targeted(_verb(actions, "diff", "Show what a change did to the notes."))
    diff.add_argument("number", nargs="?", type=whole, metavar="N", help="number of the change (default: the last)")
    revert = _targeted(_verb(actions, "revert", "Undo the last change, or go back to the notes after change N."))
    revert.add_argument("number", nargs="?", type=whole, metavar="N", help="0 goes back to before the first change")
    _verb(actions, "pending", "Show changes by the agent that wait for approval.")
    for verb, about in (("approve", "Approve a change that waits."), ("reject", "Reject a change that waits.")):
        _verb(actions, verb, about).add_argument(
            "number", type=whole, metavar="N", help="its number, from `hermes memory pending`"
        )
    _verb(actions, "people", "List the people and chats that have notes.")


def _add_edits(actions: Commands) -> None:
    old = "number of an entry, or a part of one entry that no other entry has"
    add = _targeted(_verb(actions, "add", "Add an entry."))
    replace = _targeted(_verb(actions, "replace", "Replace an entry."))
    remove = _targeted(_verb(actions, "remove", "Remove an entry."))
    for parser in (replace, remove):
        parser.add_argument("old_text", metavar="OLD", help=old)
    for parser in (add, replace):
        parser.add_argument("content", metavar="TEXT", help="text of the entry")


def _verb(actions: Commands, verb: str, about: str) -> ArgumentParser:
    parser = actions.add(verb, _asking(verb), about, json=True)
    parser.add_argument(
        "--person",
        metavar="WHO",
        help="whose notes: owner, PLATFORM:USER or chat:PLATFORM:CHAT (default: owner)",
    )
    return parser


def _targeted(parser: ArgumentParser) -> ArgumentParser:
    parser.add_argument(
        "--target",
        choices=("memory", "user"),
        help="memory: notes of the agent; user: notes about the person",
    )
    return parser


def _entry_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else None


def _asking(verb: str) -> Run:
    def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
        from hermes.cli.memory.memory_access import ask
        from hermes.services.memory.memory_request import MemoryVerb
        from hermes.services.memory.memory_text import text_of

        given = {name: getattr(args, name) for name in _FIELDS if getattr(args, name, None) is not None}
        if (entry := _entry_number(given.get("old_text", ""))) is not None:
            given = {**given, "old_text": "", "number": entry}
        answer = ask(environ, verb, given)
        if args.json:
            print_json(answer)
        else:
            print_text(printable(text_of(MemoryVerb(verb), answer, moment, most=_MANY)))
        return 0

    return run
