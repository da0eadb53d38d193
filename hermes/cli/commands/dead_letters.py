"""`hermes dead-letters`: list dead letters, and replay one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.cli.output import ago, one_line, print_json, print_table
from hermes.cli.parser import Commands
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.cli.client import AdminClient

_MAX_NAMED = 5  # ids in the error for an ambiguous prefix


def add_commands(commands: Commands) -> None:
    letters = commands.add(
        "dead-letters",
        _dead_letters,
        "List or replay dead letters. These are messages that crashed their session twice or could not be delivered.",
        examples="  hermes dead-letters\n  hermes dead-letters replay 1f2e3d",
        json=True,
    )
    replay = Commands(letters, required=False).add(
        "replay", _replay, "Replay a dead letter: give it to its session, or deliver it, again.", json=True
    )
    replay.add_argument("id", metavar="ID", help="id as listed by `hermes dead-letters`, or its first characters")


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
    """Return the text of a dead letter, and the platform if it is an outgoing message."""
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
        again = (
            "is being delivered again" if answer.get("handling") == "delivering" else "was given to its session again"
        )
        print(f"{one_line(letter)} {again}.")
    return 0


def _meant(client: AdminClient, given: str) -> str:
    """Return the id of the dead letter that `given` is, or begins."""
    known = [letter["id"] for letter in client.get("/dead-letters")["dead_letters"]]
    found = [each for each in known if each.startswith(given)]
    if given in known or not found:
        return given  # the daemon refuses an unknown id
    if len(found) > 1:
        raise HermesError(f"{given} is ambiguous: it could be {', '.join(found[:_MAX_NAMED])}; type more characters")
    return str(found[0])
