"""`hermes keys`: named API keys for other people and programs, with their own sessions, budget and expiry."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import asks_daemon, path_of
from hermes.cli.output import ago, moment, print_table
from hermes.cli.parser import Commands

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.cli.answered import Answer
    from hermes.cli.client import AdminClient

_ROLE_HELP = "user (default): the tools of tools.api; guest: those of tools.guest, so no terminal and no files"
_UNITS_S = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def add_commands(commands: Commands) -> None:
    group = commands.add(
        "keys",
        _list,
        "Manage named API keys. A key can only use sessions that it started, and no processes.",
        examples="  hermes keys create ci --expires 30d --budget-usd 2\n  hermes keys list\n  hermes keys revoke ci",
    )
    actions = Commands(group)
    create = actions.add("create", _create, "Create a key and print it. It cannot be shown again.", json=True)
    create.add_argument("name", metavar="NAME", help="name of the key: lower-case letters, digits and hyphens")
    create.add_argument("--role", choices=("user", "guest"), default="user", help=_ROLE_HELP)
    create.add_argument(
        "--expires", type=_duration, metavar="TIME", help="lifetime such as 12h, 30d or 8w (default: no expiry)"
    )
    create.add_argument(
        "--budget-tokens", type=int, default=0, metavar="N", help="tokens per day (default: no limit)"
    )
    create.add_argument(
        "--budget-usd", type=float, default=0.0, metavar="X", help="dollars per day (default: no limit)"
    )
    actions.add("list", _list, "List all keys, without their secrets.", json=True)
    revoke = actions.add("revoke", _revoke, "Revoke a key. Its sessions are kept.", json=True)
    revoke.add_argument("name", metavar="NAME", help="name as listed by `hermes keys list`")


def _duration(text: str) -> int:
    found = re.fullmatch(r"([1-9][0-9]{0,5})([mhdw])", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 12h, 30d or 8w")
    return int(found[1]) * _UNITS_S[found[2]]


@asks_daemon
def _create(args: argparse.Namespace, client: AdminClient) -> Answer:
    answer = client.post(
        "/keys",
        {
            "name": args.name,
            "role": args.role,
            "expires_s": args.expires,
            "budget_tokens": args.budget_tokens,
            "budget_usd": args.budget_usd,
        },
    )
    until = answer["key"]["expires_at"]
    valid = f"until {moment(until)}" if until else "until it is revoked"
    return {"key": {**answer["key"], "text": answer["text"]}}, [
        answer["text"],
        f"This is the key {args.name}, with the role {args.role}, valid {valid}.",
        "Only its hash is stored: it cannot be shown again.",
    ]


@asks_daemon
def _list(_args: argparse.Namespace, client: AdminClient) -> Answer:
    answer = client.get("/keys")
    if not answer["keys"]:
        return answer, "There are no named keys. `hermes keys create NAME` creates one."
    headings = ["NAME", "ROLE", "STATE", "CREATED", "EXPIRES", "USED TODAY", "BUDGET A DAY"]
    rows = [_row(key) for key in answer["keys"]]
    return answer, lambda: print_table(headings, rows, drop=("CREATED",))


def _row(key: Mapping[str, Any]) -> list[str]:
    expires = moment(key["expires_at"]) if key["expires_at"] else "never"
    budget = [f"{key['budget_tokens']:,} tokens"] if key["budget_tokens"] else []
    budget += [f"${key['budget_usd']:g}"] if key["budget_usd"] else []
    used = f"{key['used_tokens']:,} tokens, ${key['used_usd']:.2f}"
    created = ago(key["created_at"])
    return [key["name"], key["role"], key["state"], created, expires, used, ", ".join(budget) or "none"]


@asks_daemon
def _revoke(args: argparse.Namespace, client: AdminClient) -> Answer:
    return client.post(path_of("keys", args.name, "revoke")), f"The key {args.name} is revoked."
