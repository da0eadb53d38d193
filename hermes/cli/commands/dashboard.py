"""`hermes dashboard`: a link that logs in to the pages of the running daemon."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from hermes.cli.answered import show

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from pathlib import Path

    from hermes.cli.parser import Commands

_REDIRECT = """<!doctype html>
<meta charset="utf-8"><meta http-equiv="refresh" content="0; url={link}"><title>Hermes</title>
<a href="{link}">Log in to Hermes</a>
"""


def add_commands(commands: Commands) -> None:
    dashboard = commands.add(
        "dashboard",
        _dashboard,
        "Print a link that logs in to the dashboard. It works once, within five minutes.",
        examples="  hermes dashboard\n  hermes dashboard --open",
        json=True,
    )
    dashboard.add_argument("--open", action="store_true", help="also open it in the browser")


def _dashboard(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import connect
    from hermes.config.home import Home

    answer = connect(environ).post("/dashboard/links")
    link = str(answer["link"])
    is_open = args.open and _open(link, Home.from_environ(environ).data_dir)
    lines = [link, "The link works once, within five minutes."]
    lines += ["No browser could be started: open the link yourself."] if args.open and not is_open else []
    return show(args, {**answer, "opened": is_open}, lines)


def _open(link: str, home: Path) -> bool:
    """Open the link through a private file, so that its code is in no list of processes."""
    import webbrowser

    from hermes.config.revision import write_private

    file = home / "dashboard.html"
    write_private(file, _REDIRECT.format(link=html.escape(link)), secret=True)
    return webbrowser.open(file.as_uri())
