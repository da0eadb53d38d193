"""`hermes service`: run Hermes as a systemd user service, or as a system service with --system."""

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
        "Run Hermes as a systemd service: a user service, or a system service with --system.",
        examples="  hermes service install && hermes service start\n  hermes service status --json\n"
        "  sudo hermes service install --system --run-as hermes",
    )
    actions = Commands(service)
    install = _add(actions, "install", "Write the unit from your settings and enable it at boot.")
    install.add_argument("--print", action="store_true", help="print the unit and change nothing")
    install.add_argument(
        "--run-as", default=_USER, metavar="USER", help=f"user of the system service (default: {_USER})"
    )
    _add(actions, "uninstall", "Stop the service and remove its unit. Your data is kept.")
    _add(actions, "start", "Start the service and wait until it is ready.")
    _add(actions, "stop", "Stop the service. It starts again at boot.")
    _add(actions, "restart", "Restart the service.")
    _add(actions, "status", "Show the state of the service. Exit code 0 if it runs, 3 if it does not.", json=True)


def _add(actions: Commands, name: str, about: str, *, json: bool = False) -> ArgumentParser:
    parser = actions.add(name, _run(name), about, json=json)
    parser.add_argument("--system", action="store_true", help="use the system service, not your user service")
    return parser


def _run(name: str) -> Run:
    def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
        from hermes.cli import service_actions

        code: int = getattr(service_actions, name)(args, environ)
        return code

    return run
