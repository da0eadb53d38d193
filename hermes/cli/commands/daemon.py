"""`hermes daemon`: run the daemon in the foreground until it is stopped."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

from hermes.domain.errors import AlreadyRunningError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.cli.parser import Commands
    from hermes.config.home import Home
    from hermes.config.settings import Config


def add_commands(commands: Commands) -> None:
    parser = commands.add(
        "daemon",
        _run,
        "Run the daemon in the foreground. SIGTERM, Ctrl-C or `hermes stop` stops it.",
        examples="  hermes daemon\n  HERMES_HOME=/srv/hermes HERMES_API_PORT=9000 hermes daemon --log-level DEBUG",
    )
    levels = ("DEBUG", "INFO", "WARNING", "ERROR")
    parser.add_argument("--log-level", type=str.upper, choices=levels, metavar="LEVEL", help=", ".join(levels))


def _run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.app.host.init_process import leave_process_1

    leave_process_1()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the daemon handles it as a reload
    from hermes.app.host.refused_start import forget_refusal, noting_refusal
    from hermes.config.home import Home

    if args.log_level:  # as the variable, so that a reload keeps it
        environ = {**environ, "HERMES_LOG_LEVEL": args.log_level}
    home = Home.from_environ(environ)
    forget_refusal(home)
    with noting_refusal(home):
        config = _cleared(home, environ)
    from hermes.app.host.daemon_process import run

    try:
        return run(home, config, environ=environ)
    except AlreadyRunningError as error:
        remedy = "use it with `hermes chat`, or end it with `hermes stop`"
        raise AlreadyRunningError(f"{error}; {remedy}", pid=error.pid) from None


def _cleared(home: Home, environ: Mapping[str, str]) -> Config:
    from hermes.config.loader import explain_config, retired_warnings

    _, sources = explain_config(home, environ)  # reports most problems before the slow imports below
    for warning in retired_warnings(sources):
        print(f"hermes: {warning}", file=sys.stderr)
    from hermes.app.factories.preflight import preflight

    return preflight(home, environ).config
