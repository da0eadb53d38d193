"""`hermes webhooks`, `hermes hooks`, `hermes channels`: what reaches the daemon and what it tells others."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import asks_daemon, path_of
from hermes.cli.output import count, print_table, print_text
from hermes.cli.parser import Commands, add_file
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.cli.answered import Answer
    from hermes.cli.client import AdminClient


def add_commands(commands: Commands) -> None:
    _add_webhooks(commands)
    hooks = commands.add(
        "hooks",
        _hooks,
        "List the hooks that run at events, and their last problems.",
        examples="  hermes hooks\n  hermes hooks list --json",
        json=True,
    )
    Commands(hooks, required=False).add("list", _hooks, "List all hooks.", json=True)
    channels = commands.add(
        "channels",
        _channels,
        "List the chats that the daemon knows by name. Their names are targets of `hermes send --to`.",
        examples="  hermes channels\n  hermes channels --platform slack",
        json=True,
    )
    channels.add_argument("--platform", default="", metavar="P", help="only of this platform")


def _add_webhooks(commands: Commands) -> None:
    group = commands.add(
        "webhooks",
        _webhooks,
        "List the webhooks that start runs, and test them.",
        examples="  hermes webhooks\n  hermes webhooks test triage --payload issue.json --event issues.opened",
        json=True,
    )
    actions = Commands(group, required=False)
    actions.add("list", _webhooks, "List all webhooks, with their counts and problems.", json=True)
    test = actions.add(
        "test",
        _test,
        "Show the prompt that a payload becomes. Starts nothing without --run.",
        examples="  hermes webhooks test triage --payload issue.json\n"
        "  echo '{}' | hermes webhooks test triage --payload - --run",
        json=True,
    )
    test.add_argument("name", metavar="NAME", help="name of the webhook")
    add_file(test, "--payload", default="", metavar="FILE", help="JSON file; - is stdin (default: an empty object)")
    test.add_argument("--event", default="", metavar="E", help="kind of the event, such as issues.opened")
    test.add_argument("--run", dest="starts", action="store_true", help="start the run, as a signed request does")


@asks_daemon
def _webhooks(_args: argparse.Namespace, client: AdminClient) -> Answer:
    answer = client.get("/webhooks")
    if not answer["webhooks"]:
        return answer, "There are no webhooks. The section `webhooks` of the configuration adds some."
    headings = ["NAME", "PATH", "SIGNED", "DELIVERS TO", "ROLE", "ACCEPTED", "PROBLEM"]
    rows = [_webhook_row(each) for each in answer["webhooks"]]
    return answer, lambda: print_table(headings, rows, drop=("ROLE",))


def _webhook_row(each: Mapping[str, Any]) -> list[str]:
    accepted = str(each["counts"].get("accepted", 0))
    return [
        *(each["name"], each["path"], each["signing"], ", ".join(each["deliver"])),
        *(each["role"], accepted, each["problem"]),
    ]


@asks_daemon
def _test(args: argparse.Namespace, client: AdminClient) -> Answer:
    body = {"payload": _payload(args.payload), "event": args.event, "run": args.starts}
    answer = client.post(path_of("webhooks", args.name, "test"), body)
    lines = []
    if not answer["takes"]:
        lines.append("The webhook ignores this event.")
    if answer["missing"]:
        lines.append(f"The payload lacks {', '.join(answer['missing'])}.")
    if args.starts:
        lines.append(f"Started as session {answer['session']}.")

    def text() -> None:
        print_text(answer["prompt"])
        for line in lines:
            print_text(f"\n{line}")

    return answer, text


def _payload(name: str) -> Any:
    import json
    from pathlib import Path

    if not name:
        return {}
    try:
        raw = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        return json.loads(raw)
    except OSError as error:
        raise HermesError(f"{name} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise HermesError(f"the payload is not valid JSON: {error}") from error


@asks_daemon
def _hooks(_args: argparse.Namespace, client: AdminClient) -> Answer:
    answer = client.get("/hooks")
    status = answer["status"]
    if not answer["hooks"] and not status:
        return answer, "There are no hooks. The section `hooks` of the configuration and the folder hooks/ add some."
    headings = ["NAME", "EVENTS", "KIND", "TOOLS", "TIMEOUT", "ON FAILURE"]
    rows = [
        [
            *(each["name"], ", ".join(each["events"]), each["kind"], each["matcher"] or "all"),
            *(f"{each['timeout_s']:g} s", each["on_failure"]),
        ]
        for each in answer["hooks"]
    ]

    def text() -> None:
        print_table(headings, rows, drop=("TIMEOUT",))
        print_text(
            f"\n{count(status['run'], 'run')}, {status['failed']} failed, {status['dropped']} dropped, "
            f"{status['waiting']} waiting"
        )
        for problem in status["problems"]:
            print_text(f"problem: {problem}")

    return answer, text


@asks_daemon
def _channels(args: argparse.Namespace, client: AdminClient) -> Answer:
    answer = client.get("/channels", platform=args.platform)
    if not answer["channels"]:
        return answer, "No chat is known yet. A chat is known once a person has written in it."
    rows = [[each["platform"], each["name"] or "-", each["kind"], each["target"]] for each in answer["channels"]]
    return answer, lambda: print_table(["PLATFORM", "NAME", "KIND", "TARGET"], rows)
