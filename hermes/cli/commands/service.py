"""`hermes service`: Hermes as a service of systemd, a person's own by default, the machine's with --system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.parser import Commands

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.cli.parser import ArgumentParser, Run

_USER = "hermes"


def add_commands(commands: Commands) -> None:
    service = commands.add(
        "service",
        _run("status"),
        "Run Hermes as a service of systemd. Yours by default, the machine's with --system.",
        examples="  hermes service install && hermes service start\n  hermes service status --json\n"
        "  sudo hermes service install --system --run-as hermes",
    )
    actions = Commands(service)
    install = _add(actions, "install", "Write the unit, made from your settings, and have it start at boot.")
    install.add_argument("--print", action="store_true", help="only show the unit; nothing is changed")
    install.add_argument(
        "--run-as", default=_USER, metavar="USER", help=f"whom a service of the machine runs as (default: {_USER})"
    )
    _add(actions, "uninstall", "Stop the service and remove its unit. Your data stays.")
    _add(actions, "start", "Start the service; it is ready when this returns.")
    _add(actions, "stop", "Stop the service. It starts again at the next boot.")
    _add(actions, "restart", "Stop the service and start it.")
    _add(actions, "status", "Say how the service is. Exit code 0 if it runs, 3 if it does not.", json=True)


def _add(actions: Commands, name: str, about: str, *, json: bool = False) -> ArgumentParser:
    parser = actions.add(name, _run(name), about, json=json)
    parser.add_argument("--system", action="store_true", help="the machine's, not yours")
    return parser


def _run(name: str) -> Run:
    def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
        from hermes.cli import service_actions

        code: int = getattr(service_actions, name)(args, environ)
        return code

    return run
