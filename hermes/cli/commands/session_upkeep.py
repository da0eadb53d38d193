"""`hermes sessions list`, `show`, `search`, `rename`, `export`, `prune` and `delete`."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import asks_daemon, asks_session, confirms, path_of, show
from hermes.cli.output import ago, count, one_line, print_table, print_text, shortened
from hermes.cli.parser import add_session, positive
from hermes.domain.errors import HermesError, NotRunningError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.cli.answered import Answer
    from hermes.cli.client import AdminClient
    from hermes.cli.parser import Commands

_HITS = 20


def add_subcommands(actions: Commands) -> None:
    search = actions.add(
        "search",
        _search,
        "Search the messages of all sessions. Works without a daemon.",
        examples='  hermes sessions search invoice\n  hermes sessions search "disk full" --since 7d --json',
        json=True,
    )
    search.add_argument("query", metavar="TEXT", nargs="+", help="words; all of them must occur")
    search.add_argument("--limit", type=positive, default=_HITS, metavar="N", help=f"how many (default: {_HITS})")
    search.add_argument("--since", type=_time, metavar="TIME", help="only newer messages: 12h, 7d, 2026-01-02")
    rename = actions.add(
        "rename", _rename, "Set the title of a session.", examples="  hermes sessions rename - Taxes", json=True
    )
    add_session(rename)
    rename.add_argument("title", metavar="TITLE", nargs="+")
    prune = actions.add(
        "prune",
        _prune,
        "Delete conversations that were not used for some time. Sessions with open work or running background "
        "processes stay. sessions.auto_prune does it every day.",
        examples="  hermes sessions prune --older-than 90d --dry-run\n"
        "  hermes sessions prune --older-than 365d --yes",
        json=True,
    )
    prune.add_argument("--older-than", type=_age, required=True, metavar="TIME", help="not used for: 12h, 90d")
    prune.add_argument("--dry-run", action="store_true", help="only list what would be deleted")
    prune.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def _time(text: str) -> float:
    from hermes.domain.read.log_line import parse_since

    try:
        return parse_since(text, time.time())
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _age(text: str) -> float:
    """Return seconds. A date would be ambiguous for something that deletes."""
    from hermes.domain.read.log_line import parse_span

    if (span_s := parse_span(text)) is None:
        raise argparse.ArgumentTypeError(f"expected a time like 12h or 90d, found {text[:40]!r}")
    return span_s


# ---------------------------------------------------------------- search


def _search(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import AdminClient
    from hermes.config.home import Home

    home, query = Home.from_environ(environ), " ".join(args.query)
    try:
        found = AdminClient(home.socket).get("/api/search", q=query, limit=args.limit, since=args.since)
    except NotRunningError:
        from hermes.cli.offline_search import search_store
        from hermes.cli.progress import progress_bar

        with progress_bar("searching", in_bytes=False) as (progress, _):
            found = search_store(home, query, limit=args.limit, since=args.since, progress=progress)
    return show(args, found, lambda: _print_hits(found))


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


# ---------------------------------------------------------------- rename, prune


@asks_session
def _rename(args: argparse.Namespace, client: AdminClient, session: str) -> Answer:
    title = " ".join(args.title)
    answer = client.patch(path_of("api", "sessions", session), {"title": title})
    kept = answer["preferences"]["title"]
    return answer, f"The title of {session} is {kept}." if kept else f"{session} has no title now."


@asks_daemon
def _prune(args: argparse.Namespace, client: AdminClient) -> Answer:
    wish = {"older_than_s": args.older_than}
    planned: list[str] = client.post("/sessions/prune", {**wish, "dry_run": True}, timeout_s=None)["sessions"]
    if args.dry_run or not planned:
        none = "No conversation is that old."
        return {"sessions": planned, "deleted": False}, lambda: print("\n".join(planned) or none)
    if not args.yes and not (sys.stdin.isatty() and confirms(f"Delete {count(len(planned), 'conversation')}?")):
        raise HermesError("nothing was deleted; `--yes` deletes without asking, `--dry-run` lists what would go")
    done: list[str] = client.post("/sessions/prune", {**wish, "dry_run": False}, timeout_s=None)["sessions"]
    return {"sessions": done, "deleted": True}, f"Deleted {count(len(done), 'conversation')}."
