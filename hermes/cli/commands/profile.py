"""`hermes profile`: what Hermes believes about a person, why, and forgetting it."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import asks_daemon, confirms
from hermes.cli.output import ago, count, one_line, print_text
from hermes.cli.parser import Commands
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes.cli.answered import Answer
    from hermes.cli.client import AdminClient
    from hermes.cli.parser import ArgumentParser


def add_commands(commands: Commands) -> None:
    group = commands.add(
        "profile",
        _show,
        "Show what Hermes believes about you or another person, and why; forget it.",
        examples="  hermes profile\n  hermes profile show 3\n  hermes profile forget 3\n"
        "  hermes profile --person telegram:12345 --json",
        json=True,
    )
    _add_person(group)
    group.set_defaults(belief=None)
    actions = Commands(group, required=False)
    show = actions.add("show", _show, "Show one belief with all its evidence and what it replaced.", json=True)
    show.add_argument("belief", metavar="N", help="number of the belief, from `hermes profile`")
    _add_person(show)
    forget = actions.add("forget", _forget, "Forget a belief and its history. No copy of it is kept.", json=True)
    forget.add_argument("belief", metavar="N", help="number of the belief, or `all`")
    forget.add_argument("--yes", "-y", action="store_true", help="do not ask before everything is forgotten")
    _add_person(forget)


def _add_person(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--person", default=argparse.SUPPRESS, metavar="WHO", help="PLATFORM:USER (default: you, the owner)"
    )


def _person(args: argparse.Namespace) -> str:
    return getattr(args, "person", "")


@asks_daemon
def _show(args: argparse.Namespace, client: AdminClient) -> Answer:
    found = client.get("/profile", person=_person(args) or None)
    wanted = args.belief
    if wanted is None:
        return found, _listing(found)
    shown = [each for each in found["beliefs"] if each["id"] == wanted]
    if not shown:
        raise HermesError(f"there is no belief {one_line(wanted)}; `hermes profile` lists all")
    return shown[0], lambda: _print_belief(shown[0], found["beliefs"])


def _listing(found: Mapping[str, Any]) -> Callable[[], None]:
    def print_all() -> None:
        held = [each for each in found["beliefs"] if not each["superseded_by"]]
        if not held:
            print_text(f"Nothing is believed about {one_line(found['person'])} yet.")
        for each in held:
            newest = each["evidence"][-1] if each["evidence"] else None
            why = f" “{one_line(newest['quote'])}”, {ago(newest['at'])}" if newest else ""
            inferred = ", inferred" if each["inferred"] else ""
            print_text(f"{each['id']:>3}  {one_line(each['text'])}  ({each['confidence']:.0%}{inferred})")
            if why:
                print_text(f"     because of{why}")
        others = [each for each in found["people"] if each != found["person"]]
        if others:
            print_text(f"Also known: {', '.join(map(one_line, others))} (--person)")

    return print_all


def _print_belief(belief: Mapping[str, Any], beliefs: list[Mapping[str, Any]]) -> None:
    print_text(f"{belief['id']}  {one_line(belief['text'])}  ({belief['confidence']:.0%})")
    if belief["topic"]:
        print_text(f"topic: {one_line(belief['topic'])}")
    for each in belief["evidence"]:
        print_text(f"“{one_line(each['quote'])}”, {ago(each['at'])}, session {each['session']}, turn {each['turn']}")
    if belief["superseded_by"]:
        print_text(f"no longer held: replaced by {belief['superseded_by']}")
    for each in beliefs:
        if each["superseded_by"] == belief["id"]:
            print_text(f"replaced {each['id']}: {one_line(each['text'])}")


@asks_daemon
def _forget(args: argparse.Namespace, client: AdminClient) -> Answer:
    every = args.belief == "all"
    if every and not args.yes and not (sys.stdin.isatty() and confirms("Forget all beliefs?")):
        raise HermesError("nothing was forgotten; `--yes` forgets all without asking")
    wish = {"person": _person(args), **({} if every else {"belief": args.belief})}
    gone = client.post("/profile/forget", wish)
    return gone, f"Forgot {count(len(gone['forgotten']), 'belief')}."
