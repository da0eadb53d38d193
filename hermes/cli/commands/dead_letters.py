"""`hermes dead-letters`: what was set aside, and another try for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.cli.output import ago, one_line, print_json, print_table
from hermes.cli.parser import Commands
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.cli.client import AdminClient

_NAMED = 5  # of those that a beginning could mean


def add_commands(commands: Commands) -> None:
    letters = commands.add(
        "dead-letters",
        _dead_letters,
        "List or replay what was set aside. It crashed its session twice, or could not be said on its platform.",
        examples="  hermes dead-letters\n  hermes dead-letters replay 1f2e3d",
        json=True,
    )
    replay = Commands(letters, required=False).add(
        "replay", _replay, "Give a dead letter to its session once more, or have it said again.", json=True
    )
    replay.add_argument("id", metavar="ID", help="as listed by `hermes dead-letters`, or the beginning of it")


def _dead_letters(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.session_lookup import open_records

    with open_records(environ) as records:
        answer = records.dead_letters()
    if args.json:
        print_json(answer)
    elif answer["dead_letters"]:
        rows = [
            [
                letter["id"],
                ago(letter["at"]),
                _what(letter),
                letter["session"] or "-",
                letter["turn"] or "-",
                letter["problem"],
            ]
            for letter in answer["dead_letters"]
        ]
        columns = ["ID", "SET ASIDE", "WHAT", "SESSION", "TURN", "PROBLEM"]
        print_table(columns, rows, drop=("TURN", "SET ASIDE", "SESSION"))
    else:
        print("There are no dead letters.")
    return 0


def _what(letter: Mapping[str, Any]) -> str:
    """A message that came in, or something that could not be said, and where."""
    place = letter.get("place")
    if place is None:
        return "message"
    return " ".join(filter(None, (f"{letter['kind']} to {place['platform']}", place["chat"], place["thread"])))


def _replay(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from urllib.parse import quote

    from hermes.cli.client import connect

    client = connect(environ)
    letter = _meant(client, args.id)
    answer = client.post(f"/dead-letters/{quote(letter, safe='')}/replay")
    if args.json:
        print_json(answer)
    else:
        again = "is being said again" if answer.get("handling") == "delivering" else "was given to its session again"
        print(f"{one_line(letter)} {again}.")
    return 0


def _meant(client: AdminClient, given: str) -> str:
    """The id of the dead letter that somebody typed the id for, or the beginning of it."""
    known = [letter["id"] for letter in client.get("/dead-letters")["dead_letters"]]
    found = [each for each in known if each.startswith(given)]
    if given in known or not found:
        return given  # an unknown one is for the daemon to refuse
    if len(found) > 1:
        raise HermesError(f"{given} could be any of {', '.join(found[:_NAMED])}; type more of it")
    return str(found[0])
