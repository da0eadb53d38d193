"""`hermes reload`: the running daemon reads its configuration again, and what came of it is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hermes.cli.output import one_line, print_json, say
from hermes.domain.errors import ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

    from hermes.cli.parser import Commands


def add_commands(commands: Commands) -> None:
    commands.add(
        "reload",
        _reload,
        "Have the daemon read its configuration and key files again. What can change while it runs is in force\n"
        "immediately. Variables are those that the daemon was started with, not those of this shell. Exit code\n"
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
    applied = [*_settings(answer["applied"]), *_files(answer.get("files_applied", ()))]
    later = [*_settings(answer["needs_restart"]), *_files(answer.get("files_need_restart", ()))]
    for line in applied or ([] if later else ["Nothing has changed."]):
        say(line, indent="  ")
    if later:
        say("Only after `hermes restart`:")
    for line in later:
        say(f"  {line}", indent="  ")
    if pid := answer.get("pid"):
        say(f"Environment variables were those that the daemon (pid {pid}) was started with.")
    return 0


def _settings(changes: Mapping[str, list[Any]]) -> list[str]:
    return [_line(name, before, after) for name, (before, after) in changes.items()]


def _files(names: Iterable[str]) -> list[str]:
    return [one_line(f"{name}: the file has new contents") for name in names]


def _line(name: str, before: Any, after: Any) -> str:
    return one_line(f"{name}: {_shown(before)} -> {_shown(after)}")


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
