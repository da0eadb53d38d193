"""`hermes pairing`: list pairing requests and paired users of chat platforms, approve, change and revoke them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.cli.answered import asks_daemon
from hermes.cli.output import ago, moment, print_table, print_text
from hermes.cli.parser import Commands

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.cli.answered import Answer
    from hermes.cli.client import AdminClient


_ROLES = ("guest", "user")  # admins are set in the configuration


def add_commands(commands: Commands) -> None:
    group = commands.add(
        "pairing",
        _list,
        "Manage who can talk to Hermes on chat platforms. A new user who writes to the bot gets a pairing code.",
        examples=(
            "  hermes pairing list\n  hermes pairing approve telegram ABCD2345 --role user\n"
            "  hermes pairing role telegram 77 guest\n  hermes pairing revoke telegram 77"
        ),
    )
    actions = Commands(group)
    actions.add("list", _list, "List pairing requests and paired users.", json=True)
    approve = actions.add("approve", _approve, "Approve the pairing request with this code.", json=True)
    approve.add_argument("platform", metavar="PLATFORM", help="chat platform, such as telegram")
    approve.add_argument("code", metavar="CODE", help="the code that the bot sent to the user")
    approve.add_argument("--role", choices=_ROLES, default="guest", help="role of the user (default: guest)")
    role = actions.add("role", _role, "Change the role of a paired user.", json=True)
    role.add_argument("platform", metavar="PLATFORM", help="chat platform, such as telegram")
    role.add_argument("user", metavar="USER", help="id of the user on the platform, as listed")
    role.add_argument("role", choices=_ROLES, help="guest: no terminal and no files; user: both, in the sandbox")
    revoke = actions.add("revoke", _revoke, "Revoke the pairing of a user.", json=True)
    revoke.add_argument("platform", metavar="PLATFORM", help="chat platform, such as telegram")
    revoke.add_argument("user", metavar="USER", help="id of the user on the platform, as listed")


@asks_daemon
def _list(_args: argparse.Namespace, client: AdminClient) -> Answer:
    answer = client.get("/pairing")
    return answer, lambda: _print(answer, client)


def _print(answer: Mapping[str, Any], client: AdminClient) -> None:
    rows = [
        [each["platform"], each["user"], state, each.get("role", ""), ago(each["at"]), each["name"]]
        for state, people in (("asks", answer["pending"]), ("paired", answer["approved"]))
        for each in people
    ]
    if rows:
        print_table(["PLATFORM", "USER", "STATE", "ROLE", "SINCE", "NAME"], rows, drop=("SINCE",))
    else:
        print_text("There are no paired users and no pairing requests.")
        if not client.info().get("platforms"):
            print_text("No chat platform is set up; run `hermes setup telegram` or `hermes setup slack`.")
    if answer["locked_until"]:
        print_text(f"Approval is locked until {moment(answer['locked_until'])}: too many wrong codes were entered.")


@asks_daemon
def _approve(args: argparse.Namespace, client: AdminClient) -> Answer:
    answer = client.post("/pairing/approve", {"platform": args.platform, "code": args.code, "role": args.role})
    friend = answer["approved"]
    who = f"{friend['name']} (user {friend['user']})" if friend["name"] else f"user {friend['user']}"
    where = f"on {friend['platform']}, with the role {friend['role']}"
    return answer, f"{who} can now talk to the bot {where}, and was notified."


@asks_daemon
def _role(args: argparse.Namespace, client: AdminClient) -> Answer:
    answer = client.post("/pairing/role", {"platform": args.platform, "user": args.user, "role": args.role})
    return answer, f"User {args.user} now has the role {args.role} on {args.platform}."


@asks_daemon
def _revoke(args: argparse.Namespace, client: AdminClient) -> Answer:
    answer = client.post("/pairing/revoke", {"platform": args.platform, "user": args.user})
    lines = [f"User {args.user} can no longer talk to the bot on {args.platform}."]
    if answer["revoked"].get("left_home"):
        lines.append(
            "Their chat was the home channel. There is none now: send /sethome in the chat that should replace it."
        )
    return answer, lines
