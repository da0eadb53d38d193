"""`hermes pairing`: who on chat platforms asks to be let in, who was, and to change that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.output import ago, moment, one_line, print_json, print_table, say
from hermes.cli.parser import Commands

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping


_ROLES = ("guest", "user")  # admins are named in the configuration


def add_commands(commands: Commands) -> None:
    group = commands.add(
        "pairing",
        _list,
        "Let people talk to Hermes on chat platforms. Somebody unknown who writes to the bot gets a code for you.",
        examples=(
            "  hermes pairing list\n  hermes pairing approve telegram ABCD2345 --role user\n"
            "  hermes pairing role telegram 77 guest\n  hermes pairing revoke telegram 77"
        ),
    )
    actions = Commands(group)
    actions.add("list", _list, "List who asks to be let in, and who was.", json=True)
    approve = actions.add("approve", _approve, "Let in whoever has that code.", json=True)
    approve.add_argument("platform", metavar="PLATFORM", help="telegram, say")
    approve.add_argument("code", metavar="CODE", help="as the person was told it")
    approve.add_argument("--role", choices=_ROLES, default="guest", help="what they may do (default: guest)")
    role = actions.add("role", _role, "Change what somebody who was let in may do.", json=True)
    role.add_argument("platform", metavar="PLATFORM", help="telegram, say")
    role.add_argument("user", metavar="USER", help="the person's id there, as listed")
    role.add_argument("role", choices=_ROLES, help="guest: no terminal and no files; user: both, in the sandbox")
    revoke = actions.add("revoke", _revoke, "Do not let that person talk any more, from now on.", json=True)
    revoke.add_argument("platform", metavar="PLATFORM", help="telegram, say")
    revoke.add_argument("user", metavar="USER", help="the person's id there, as listed")


def _list(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import connect

    client = connect(environ)
    answer = client.get("/pairing")
    if args.json:
        print_json(answer)
        return 0
    rows = [
        [each["platform"], each["user"], state, each.get("role", ""), ago(each["at"]), each["name"]]
        for state, people in (("asks", answer["pending"]), ("let in", answer["approved"]))
        for each in people
    ]
    if rows:
        print_table(["PLATFORM", "USER", "STATE", "ROLE", "SINCE", "NAME"], rows, drop=("SINCE",))
    else:
        say("Nobody was let in by pairing, and nobody asks to be.")
        if not client.info().get("platforms"):
            say("No chat platform is set up; `hermes setup telegram` or `hermes setup slack` does that.")
    if answer["locked_until"]:
        say(f"Approving is locked until {moment(answer['locked_until'])}: there were too many wrong codes.")
    return 0


def _approve(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import connect

    answer = connect(environ).post(
        "/pairing/approve", {"platform": args.platform, "code": args.code, "role": args.role}
    )
    if args.json:
        print_json(answer)
    else:
        friend = answer["approved"]
        who = f"{friend['name']} (user {friend['user']})" if friend["name"] else f"user {friend['user']}"
        say(one_line(f"{who} may talk on {friend['platform']} now, as a {friend['role']}, and was told so."))
    return 0


def _role(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import connect

    answer = connect(environ).post("/pairing/role", {"platform": args.platform, "user": args.user, "role": args.role})
    if args.json:
        print_json(answer)
    else:
        say(one_line(f"User {args.user} is a {args.role} on {args.platform} from now on."))
    return 0


def _revoke(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import connect

    answer = connect(environ).post("/pairing/revoke", {"platform": args.platform, "user": args.user})
    if args.json:
        print_json(answer)
    else:
        say(one_line(f"User {args.user} may not talk on {args.platform} any more."))
        if answer["revoked"].get("left_home"):
            say(
                "Their chat was the home channel, and is not any more: say /sethome in the chat that is to be it now."
            )
    return 0
