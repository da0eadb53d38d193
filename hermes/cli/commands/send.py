"""`hermes send`: send a message to a chat without the agent, through the daemon, and wait for its delivery."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import show
from hermes.cli.output import one_line, print_text
from hermes.cli.parser import Commands, seconds
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.cli.client import AdminClient

_POLL_S = 0.1


class NotDeliveredError(HermesError):
    """The message was not delivered in time. It is stored, and delivery continues unless the error says otherwise."""

    exit_code = 75


def add_commands(commands: Commands) -> None:
    send = commands.add(
        "send",
        _send,
        "Send a message to a chat without the agent. Waits until the daemon has delivered it.",
        examples=(
            "  hermes send 'The backup is done.'\n"
            "  hermes send --platform telegram --chat 77 hello\n"
            "  hermes send --to 'slack:#ops' deployed\n"
            "  uptime | hermes send --home"
        ),
        json=True,
    )
    send.add_argument(
        "--platform", default="", metavar="P", help="chat platform, such as telegram; optional if only one is set up"
    )
    where = send.add_mutually_exclusive_group()
    where.add_argument("--chat", default="", metavar="C", help="chat id, or CHAT:THREAD")
    where.add_argument("--to", default="", metavar="TARGET", help="home, PLATFORM, PLATFORM:NAME or PLATFORM:CHAT")
    where.add_argument("--home", action="store_true", help="send to the home channel, set with /sethome (default)")
    send.add_argument(
        "--timeout", type=seconds, default=60, metavar="S", help="seconds to wait for the delivery (default: 60)"
    )
    send.add_argument("text", nargs="*", metavar="TEXT", help="the message (default: read from stdin)")


def _send(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    import secrets

    from hermes.cli.client import connect

    client = connect(environ)
    text = " ".join(args.text) if args.text else "" if sys.stdin.isatty() else sys.stdin.read().rstrip("\n")
    if not text.strip():
        args.usage_error("the message is empty: pass it as TEXT or on stdin")
    chat, _, thread = args.chat.partition(":")
    name = secrets.token_hex(8)
    body = {"id": name, "platform": args.platform, "chat": chat, "thread": thread, "text": text}
    if args.to:
        body["target"] = args.to
    place = client.post("/posts", body)["place"]
    state = _wait(client, name, time.monotonic() + args.timeout)
    where = f"{place['platform']}, chat {place['chat']}"
    if state["state"] == "failed":
        raise NotDeliveredError(
            f"the message cannot be delivered to {where}: {state['problem']} "
            f"(kept; `hermes dead-letters replay {state['dead_letter']}` tries it again)"
        )
    if state["state"] != "sent":
        problem = f": {state['problem']}" if state["problem"] else ""
        raise NotDeliveredError(f"not delivered to {where} yet{problem} (stored; the daemon keeps trying)")
    return show(args, {**state, "place": place}, f"Delivered to {where}.")


def _wait(client: AdminClient, name: str, deadline: float) -> Mapping[str, Any]:
    shown = ""
    while True:
        state: Mapping[str, Any] = client.get(f"/posts/{name}")
        if state["state"] != "waiting" or time.monotonic() > deadline:
            return state
        if state["problem"] != shown:
            shown = state["problem"]
            print_text(one_line(f"not delivered yet: {shown}; the daemon tries again"), file=sys.stderr)
        time.sleep(_POLL_S)
