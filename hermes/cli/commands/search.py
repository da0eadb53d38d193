"""`hermes search`, and `hermes sessions search`, which is the same."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import show
from hermes.cli.output import ago, one_line, print_table, print_text, shortened
from hermes.cli.parser import positive
from hermes.domain.errors import NotRunningError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.cli.parser import ArgumentParser, Commands

_HITS = 20
_ABOUT = "Search the messages of all sessions. Works without a daemon."


def add_commands(commands: Commands) -> None:
    add_search(commands, "hermes search")


def add_search(commands: Commands, name: str) -> None:
    examples = (
        f'  {name} invoice\n  {name} "disk full" --since 7d --json\n'
        f"  {name} holiday OR vacation --person telegram:12345 --platform telegram"
    )
    search: ArgumentParser = commands.add("search", _search, _ABOUT, examples=examples, json=True)
    search.add_argument(
        "query", metavar="TEXT", nargs="+", help='words; all of them must occur; "a phrase", -not, OR'
    )
    search.add_argument("--limit", type=positive, default=_HITS, metavar="N", help=f"how many (default: {_HITS})")
    search.add_argument("--since", type=_time, metavar="TIME", help="only newer messages: 12h, 7d, 2026-01-02")
    search.add_argument("--until", type=_time, metavar="TIME", help="only older messages")
    search.add_argument(
        "--platform", default="", metavar="NAME", help="only messages of this platform: telegram, cli"
    )
    search.add_argument(
        "--person",
        default="",
        metavar="WHO",
        help="only what this person wrote, and the answers: PLATFORM:USER, owner",
    )
    search.add_argument("--role", choices=("user", "assistant"), help="only messages with this role")


def _time(text: str) -> float:
    from hermes.domain.read.log_line import parse_since

    try:
        return parse_since(text, time.time())
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _search(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import AdminClient
    from hermes.config.home import Home

    home, query = Home.from_environ(environ), " ".join(args.query)
    try:
        found = AdminClient(home.socket).get(
            "/api/search",
            q=query,
            limit=args.limit,
            since=args.since,
            until=args.until,
            role=args.role,
            platform=args.platform or None,
            person=args.person or None,
        )
    except NotRunningError:
        found = _offline(args, home, query)
    return show(args, found, lambda: _print_hits(found))


def _offline(args: argparse.Namespace, home: Any, query: str) -> dict[str, Any]:
    from hermes.cli.offline_search import search_store
    from hermes.cli.progress import progress_bar
    from hermes.ports.search import SearchFilter

    only = SearchFilter(
        since=args.since, until=args.until, role=args.role, platform=args.platform, person=args.person
    )
    with progress_bar("searching", in_bytes=False) as (progress, _):
        return search_store(home, query, limit=args.limit, only=only, progress=progress)


def _print_hits(found: Mapping[str, Any]) -> None:
    if (index := found["index"]) is not None and index["indexed"] < index["total"]:
        percent = 100 * index["indexed"] // index["total"]
        print_text(f"The index is being built: {percent} % of the messages were searched.")
    if not found["hits"]:
        print("No message matches.")
        return
    rows = [
        [hit["session_id"], ago(hit["at"]), hit["role"], shortened(one_line(hit["snippet"]))] for hit in found["hits"]
    ]
    print_table(["SESSION", "WHEN", "WHO", "MESSAGE"], rows, drop=("WHO", "WHEN"), numbers=("WHEN",))
