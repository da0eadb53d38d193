"""`hermes top`: live view of sessions, actors, processes and platforms; one table where there is no terminal."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from hermes.cli.output import print_json, print_table, print_text
from hermes.cli.parser import CHILDREN, positive, seconds
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.cli.parser import Commands

_SORTS = ("state", "age", "mail", "tokens", "cost", "active")
_EVERY_S = 2.0
_MIN_EVERY_S = 0.5
_LISTED = 200


def add_commands(commands: Commands) -> None:
    top = commands.add(
        "top",
        _top,
        "Watch what runs: sessions with their state, mail, current step, tokens and cost; actors, processes and chat "
        "platforms. Keys sort, filter, open, follow, stop and approve; ? lists them. Prints one table without a "
        "terminal.",
        examples="  hermes top\n  hermes top --once --sort tokens\n  hermes top --json | jq .phases",
        json=True,
    )
    top.add_argument("--once", action="store_true", help="print one table and exit")
    top.add_argument("--sort", choices=_SORTS, default="state", help="order of sessions (default: state)")
    top.add_argument("--filter", default="", metavar="WORDS", help="only rows with these words")
    top.add_argument("--busy", action="store_true", help="only sessions with open work")
    top.add_argument("--children", action="store_true", help=CHILDREN)
    top.add_argument("--limit", type=positive, default=_LISTED, metavar="N", help=f"sessions (default: {_LISTED})")
    top.add_argument(
        "--every",
        type=_interval,
        default=_EVERY_S,
        metavar="SECONDS",
        help=f"between samples (default: {_EVERY_S:g})",
    )


def _interval(text: str) -> float:
    if (every_s := seconds(text)) < _MIN_EVERY_S:
        raise argparse.ArgumentTypeError(f"expected at least {_MIN_EVERY_S:g} seconds, found {text[:40]!r}")
    return every_s


def _top(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import connect
    from hermes.cli.inspection.live_source import DaemonSource
    from hermes.tui.top.source import SampleWish

    client = connect(environ)
    client.info()  # explains a daemon that does not run or hangs
    source = DaemonSource(client)
    wish = SampleWish(sort=args.sort, find=args.filter, is_busy=args.busy, children=args.children, limit=args.limit)
    if args.json:
        print_json(source.raw(wish))
    elif args.once or not _is_terminal(environ):
        _print_once(source, wish)
    else:
        from hermes.tui.top.top_app import TopApp

        TopApp(source, wish=wish, every_s=args.every, ascii_only=not _has_unicode()).run()
    return 0


def _is_terminal(environ: Mapping[str, str]) -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and environ.get("TERM", "") not in ("", "dumb", "unknown")


def _has_unicode() -> bool:
    return "utf" in (sys.stdout.encoding or "").lower()


def _print_once(source: Any, wish: Any) -> None:
    from hermes.tui.top import header
    from hermes.tui.top.table import Tab, columns_of, rows_of
    from hermes.tui.top.trend import Trends, with_sample

    sample = source.sample(wish)
    columns = os.get_terminal_size().columns if sys.stdout.isatty() else 0
    trends = with_sample(Trends(), sample)
    for line in header.lines(trends, columns or 200)[:2]:
        print_text(line)
    abouts = {}
    for each in sample.sessions[: wish.limit]:
        if not each.title:
            try:
                abouts[each.id] = source.beginning(each.id)
            except HermesError:  # deleted since
                continue
    for tab in Tab:
        rows = rows_of(tab, sample, abouts, wish.find)
        if rows or tab is Tab.SESSIONS:
            print()
            print(f"{tab} ({sample.matching if tab is Tab.SESSIONS else len(rows)})")
            named = columns_of(tab)
            print_table(
                [each.name for each in named],
                [row.cells for row in rows],
                drop=[each.name for each in sorted(named, key=lambda each: -each.drop) if each.drop],
                numbers=[each.name for each in named if each.right],
            )
