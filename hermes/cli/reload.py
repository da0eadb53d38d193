"""`hermes reload`: the running daemon reads its configuration again, and what came of it is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hermes.cli.output import one_line, print_json, say
from hermes.errors import ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.cli.parser import Commands


def add_commands(commands: Commands) -> None:
    commands.add(
        "reload",
        _reload,
        "Have the daemon read its configuration again. What can change while it runs is in force at once. Exit code\n"
        "78 if the configuration cannot be used, and then the old one stays.",
        examples="  hermes reload\n  hermes reload --json | jq .needs_restart",
        json=True,
    )


def _reload(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import AdminError, connect

    try:
        answer = connect(environ).post("/reload")
    except AdminError as error:
        if error.code == "bad_configuration":
            raise ConfigError(str(error)) from error
        raise
    if args.json:
        print_json(answer)
        return 0
    if not answer["applied"] and not answer["needs_restart"]:
        say("Nothing has changed.")
    for name, (before, after) in answer["applied"].items():
        say(_line(name, before, after), indent="  ")
    if answer["needs_restart"]:
        say("Only after `hermes restart`:")
    for name, (before, after) in answer["needs_restart"].items():
        say(f"  {_line(name, before, after)}", indent="  ")
    return 0


def _line(name: str, before: Any, after: Any) -> str:
    return one_line(f"{name}: {_shown(before)} -> {_shown(after)}")


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
