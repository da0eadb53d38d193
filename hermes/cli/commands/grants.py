"""`hermes grants`: what was allowed for good, in every conversation, and to take it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.output import one_line, print_json, say
from hermes.cli.parser import Commands

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping


def add_commands(commands: Commands) -> None:
    grants = commands.add(
        "grants",
        _grants,
        "List what was allowed for good, in every conversation, or take it back.",
        examples="  hermes grants\n  hermes grants withdraw recursive-delete",
        json=True,
    )
    withdraw = Commands(grants, required=False).add(
        "withdraw", _withdraw, "Have commands of that kind asked about again.", json=True
    )
    withdraw.add_argument("kind", metavar="KIND", help="as listed by `hermes grants`")


def _grants(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import connect

    answer = connect(environ).get("/grants")
    if args.json:
        print_json(answer)
    elif answer["grants"]:
        for kind in answer["grants"]:
            say(one_line(kind))
    else:
        say("Nothing is allowed for good.")
    return 0


def _withdraw(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from urllib.parse import quote

    from hermes.cli.client import connect

    answer = connect(environ).post(f"/grants/{quote(args.kind, safe='')}/withdraw")
    if args.json:
        print_json(answer)
    else:
        say(one_line(f"Commands of the kind {args.kind} are asked about again."))
    return 0
