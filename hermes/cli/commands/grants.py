"""`hermes grants`: list permanent grants, and withdraw one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.output import one_line, print_json, print_text
from hermes.cli.parser import Commands

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping


def add_commands(commands: Commands) -> None:
    grants = commands.add(
        "grants",
        _grants,
        "List permanent grants, which hold in every conversation, or withdraw one.",
        examples="  hermes grants\n  hermes grants withdraw recursive-delete",
        json=True,
    )
    withdraw = Commands(grants, required=False).add(
        "withdraw", _withdraw, "Withdraw a grant: commands of this kind need approval again.", json=True
    )
    withdraw.add_argument("kind", metavar="KIND", help="kind as listed by `hermes grants`")


def _grants(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import connect

    answer = connect(environ).get("/grants")
    if args.json:
        print_json(answer)
    elif answer["grants"]:
        for kind in answer["grants"]:
            print_text(one_line(kind))
    else:
        print_text("There are no permanent grants.")
    return 0


def _withdraw(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from urllib.parse import quote

    from hermes.cli.client import connect

    answer = connect(environ).post(f"/grants/{quote(args.kind, safe='')}/withdraw")
    if args.json:
        print_json(answer)
    else:
        print_text(one_line(f"Withdrawn: commands of kind {args.kind} need approval again."))
    return 0
