"""`hermes slack manifest`: print the manifest from which Slack creates the app."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.output import print_json
from hermes.cli.parser import Commands

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping


def add_commands(commands: Commands) -> None:
    slack = commands.add(
        "slack",
        _manifest,
        "Prepare a Slack app for Hermes.",
        examples="  hermes slack manifest\n  hermes slack manifest --url https://hermes.example/slack/events --json",
    )
    manifest = Commands(slack).add(
        "manifest",
        _manifest,
        "Print the app manifest. Paste it at api.slack.com/apps (Create New App, From a manifest).",
        json=True,
    )
    manifest.add_argument("--name", default="Hermes", help="name of the bot (default: Hermes)")
    manifest.add_argument(
        "--url", default="", help="public URL that leads to slack.port, for transport http (default: Socket Mode)"
    )
    manifest.add_argument(
        "--assistant", action="store_true", help="show direct messages as assistant threads with a status line"
    )
    manifest.add_argument(
        "--all-commands", action="store_true", help="register each command under its own name too, such as /new"
    )


def _manifest(args: argparse.Namespace, _environ: Mapping[str, str]) -> int:
    from hermes.adapters.slack.manifest import manifest

    made = manifest(args.name, url=args.url, assistant=args.assistant, all_commands=args.all_commands)
    if args.json:
        print_json(made)
        return 0
    import yaml

    print(yaml.safe_dump(made, sort_keys=False, allow_unicode=True), end="")
    return 0
