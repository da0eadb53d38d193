"""`hermes config`: what the configuration is, where it comes from, and whether it can be used."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hermes.cli.output import print_json
from hermes.cli.parser import Commands

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping


def add_commands(commands: Commands) -> None:
    config = commands.add(
        "config",
        _show,
        "Check or show the configuration.",
        examples='  hermes config check\n  hermes config show --json\n  $EDITOR "$(hermes config path)"',
    )
    actions = Commands(config)
    actions.add(
        "check", _check, "Read the configuration as the daemon would; exit 78 if it cannot be used.", json=True
    )
    actions.add("show", _show, "Show every setting as it is in force, and where it was set.", json=True)
    actions.add("path", _path, "Print where the configuration file is, or would be.", json=True)


def _check(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config import load_config
    from hermes.home import Home

    home = Home.from_environ(environ)
    config = load_config(home, environ)
    if config.model.provider == "openai":
        config.model.api_key(environ)  # a key that cannot be found is a mistake to hear of now
    note = "" if home.config_file.exists() else " (there is no file, so all settings are at their defaults)"
    if args.json:
        print_json({"ok": True, "path": str(home.config_file), "exists": home.config_file.exists()})
    else:
        print(f"{home.config_file}: good{note}")
    return 0


def _show(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from dataclasses import asdict

    from hermes.config import explain_config
    from hermes.home import Home

    config, sources = explain_config(Home.from_environ(environ), environ)
    sections = asdict(config)
    if args.json:
        print_json(sections | {"sources": dict(sources)})
        return 0
    for section, settings in sections.items():
        print(f"{section}:")
        for key, value in settings.items():
            source = sources.get(f"{section}.{key}")
            print(f"  {key}: {json.dumps(value)}" + (f"  # {source}" if source else ""))
    return 0


def _path(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.home import Home

    path = str(Home.from_environ(environ).config_file)
    if args.json:
        print_json({"path": path})
    else:
        print(path)
    return 0
