"""`hermes reload`: make the daemon read its configuration again, and print the changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import show
from hermes.cli.output import one_line, print_text
from hermes.domain.errors import ConfigError, HermesError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

    from hermes.cli.parser import Commands
    from hermes.config.home import Home


def add_commands(commands: Commands) -> None:
    commands.add(
        "reload",
        _reload,
        "Make the daemon read its configuration and key files again. Settings that can change while it runs take\n"
        "effect immediately. It uses the environment variables that it was started with, not those of this shell.\n"
        "Exit code 78 if the configuration is not valid; the old one stays in effect.",
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
    return show(args, answer, lambda: _print(answer))


def reload_running(home: Home) -> tuple[bool | None, str]:
    """Reload the daemon, if one runs. Return whether it accepted (None: none runs), and a sentence about it."""
    from hermes.cli.client import AdminClient
    from hermes.config.home import is_free

    if is_free(home):
        return None, ""
    try:
        answer = AdminClient(home.socket).post("/reload")
    except HermesError as error:
        text = f"The running daemon still has the old configuration: {error}. Type `hermes reload` to try again."
        return False, text
    if answer["needs_restart"] or answer.get("files_need_restart"):
        return True, "The running daemon was reloaded; type `hermes restart` to apply the other changes."
    return True, "The running daemon uses the new configuration."


def pending_changes(home: Home) -> Mapping[str, Any] | None:
    """Return what a reload would change. None if no daemon runs, or it cannot tell. Raises ConfigError."""
    from hermes.cli.client import AdminClient, AdminError

    try:
        found: Mapping[str, Any] = AdminClient(home.socket).get("/reload")
    except AdminError as error:
        if error.code == "bad_configuration":
            raise ConfigError(str(error)) from error
        return None
    except HermesError:
        return None
    return found


def _print(answer: Mapping[str, Any]) -> None:
    applied = [*_settings(answer["applied"]), *_files(answer.get("files_applied", ()))]
    later = [*_settings(answer["needs_restart"]), *_files(answer.get("files_need_restart", ()))]
    for line in applied or ([] if later else ["Nothing has changed."]):
        print_text(line, indent="  ")
    if later:
        print_text("These take effect after `hermes restart`:")
    for line in later:
        print_text(f"  {line}", indent="  ")
    if pid := answer.get("pid"):
        print_text(f"The daemon (pid {pid}) used the environment variables that it was started with.")


def _settings(changes: Mapping[str, list[Any]]) -> list[str]:
    return [_line(name, before, after) for name, (before, after) in changes.items()]


def _files(names: Iterable[str]) -> list[str]:
    return [one_line(f"{name}: the file has new contents") for name in names]


def _line(name: str, before: Any, after: Any) -> str:
    return one_line(f"{name}: {_shown(before)} -> {_shown(after)}")


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
