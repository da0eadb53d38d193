"""`hermes grants`: list permanent grants, and withdraw one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.answered import asks_daemon, path_of
from hermes.cli.parser import Commands

if TYPE_CHECKING:
    import argparse

    from hermes.cli.answered import Answer
    from hermes.cli.client import AdminClient


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


@asks_daemon
def _grants(_args: argparse.Namespace, client: AdminClient) -> Answer:
    answer = client.get("/grants")
    return answer, answer["grants"] or "There are no permanent grants."


@asks_daemon
def _withdraw(args: argparse.Namespace, client: AdminClient) -> Answer:
    answer = client.post(path_of("grants", args.kind, "withdraw"))
    return answer, f"Withdrawn: commands of kind {args.kind} need approval again."
