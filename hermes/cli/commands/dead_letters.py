"""`hermes dead-letters`: list dead letters, and replay one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import asks_daemon, only_match, path_of, reads_records
from hermes.cli.output import ago, print_table
from hermes.cli.parser import Commands

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from hermes.cli.answered import Answer
    from hermes.cli.client import AdminClient
    from hermes.cli.session_lookup import Records


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


@reads_records
def _dead_letters(_args: argparse.Namespace, records: Records) -> Answer:
    answer = records.dead_letters()
    letters = answer["dead_letters"]
    return answer, partial(_print, letters) if letters else "There are no dead letters."


def _print(letters: Sequence[Mapping[str, Any]]) -> None:
    rows = [
        [each["id"], ago(each["at"]), _what(each), each["session"] or "-", each["turn"] or "-", each["problem"]]
        for each in letters
    ]
    columns = ["ID", "SET ASIDE", "WHAT", "SESSION", "TURN", "PROBLEM"]
    print_table(columns, rows, drop=("TURN", "SET ASIDE", "SESSION"))


def _what(letter: Mapping[str, Any]) -> str:
    """Return the text of a dead letter, and the platform if it is an outgoing message."""
    place = letter.get("place")
    if place is None:
        return "message"
    return " ".join(filter(None, (f"{letter['kind']} to {place['platform']}", place["chat"], place["thread"])))


@asks_daemon
def _replay(args: argparse.Namespace, client: AdminClient) -> Answer:
    known = [each["id"] for each in client.get("/dead-letters")["dead_letters"]]
    found = [args.id] if args.id in known else [each for each in known if each.startswith(args.id)]
    letter = only_match(found, args.id) or args.id  # the daemon refuses an unknown id
    answer = client.post(path_of("dead-letters", letter, "replay"))
    again = "is being delivered again" if answer.get("handling") == "delivering" else "was given to its session again"
    return answer, f"{letter} {again}."
