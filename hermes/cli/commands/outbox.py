"""`hermes outbox` and `hermes dead-letters`: list, drop, replay and delete messages that could not be delivered."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import asks_daemon, confirms, only_match, path_of, reads_records
from hermes.cli.output import ago, print_table
from hermes.cli.parser import Commands
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from hermes.cli.answered import Answer
    from hermes.cli.client import AdminClient
    from hermes.cli.session_lookup import Records


def add_commands(commands: Commands) -> None:
    outbox = commands.add(
        "outbox",
        _outbox,
        "List the messages to chats that are not delivered yet, or drop one. Hermes retries them by itself.",
        examples="  hermes outbox\n  hermes outbox drop reply:1f2e3d",
        json=True,
    )
    drop = Commands(outbox, required=False).add(
        "drop",
        _drop,
        "Stop sending a message. It becomes a dead letter: `hermes dead-letters replay` sends it after all.",
        json=True,
    )
    drop.add_argument("id", metavar="ID", help="id as listed by `hermes outbox`, or its first characters")
    drop.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    letters = commands.add(
        "dead-letters",
        _dead_letters,
        "List, replay or delete dead letters. These are messages that crashed their session twice, could not be "
        "delivered, or were dropped.",
        examples="  hermes dead-letters\n  hermes dead-letters replay 1f2e3d\n  hermes dead-letters delete 1f2e3d",
        json=True,
    )
    actions = Commands(letters, required=False)
    replay = actions.add(
        "replay", _replay, "Replay a dead letter: give it to its session, or deliver it, again.", json=True
    )
    delete = actions.add("delete", _delete, "Delete a dead letter for good.", json=True)
    delete.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    for action in (replay, delete):
        action.add_argument("id", metavar="ID", help="id as listed by `hermes dead-letters`, or its first characters")


@reads_records
def _outbox(_args: argparse.Namespace, records: Records) -> Answer:
    answer = records.outbox()
    waiting = answer["outbox"]
    return answer, partial(_print_outbox, waiting) if waiting else "Everything is delivered."


def _print_outbox(waiting: Sequence[Mapping[str, Any]]) -> None:
    rows = [
        [each["id"], ago(each["at"]), _what(each), str(each["tries"]), each["session"] or "-", each["problem"] or "-"]
        for each in waiting
    ]
    columns = ["ID", "SINCE", "WHAT", "TRIES", "SESSION", "PROBLEM"]
    print_table(columns, rows, drop=("SESSION", "SINCE"), numbers=("TRIES",))


@asks_daemon
def _drop(args: argparse.Namespace, client: AdminClient) -> Answer:
    name = _named(args.id, client.get("/outbox")["outbox"])
    _confirm(args, f"Stop sending {name}?", "nothing was dropped; `--yes` drops without asking")
    answer = client.post(path_of("outbox", name, "drop"))
    return answer, f"{name} is not sent any more. It is kept: `hermes dead-letters replay {name}` sends it after all."


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
    letter = _named(args.id, client.get("/dead-letters")["dead_letters"])
    answer = client.post(path_of("dead-letters", letter, "replay"))
    again = "is being delivered again" if answer.get("handling") == "delivering" else "was given to its session again"
    return answer, f"{letter} {again}."


@asks_daemon
def _delete(args: argparse.Namespace, client: AdminClient) -> Answer:
    letter = _named(args.id, client.get("/dead-letters")["dead_letters"])
    _confirm(args, f"Delete {letter} for good?", "nothing was deleted; `--yes` deletes without asking")
    return client.delete(path_of("dead-letters", letter)), f"{letter} was deleted."


def _named(given: str, listed: Sequence[Mapping[str, Any]]) -> str:
    """Return the listed id that starts with these characters. The daemon refuses an unknown one."""
    known = [str(each["id"]) for each in listed]
    return (
        only_match([given] if given in known else [each for each in known if each.startswith(given)], given) or given
    )


def _confirm(args: argparse.Namespace, question: str, refusal: str) -> None:
    if not args.yes and not (sys.stdin.isatty() and confirms(question)):
        raise HermesError(refusal)
