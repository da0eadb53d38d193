"""`hermes sessions list`, `show`, `search`, `rename`, `export`, `prune` and `delete`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from hermes.cli.answered import asks_daemon, asks_session, confirms, path_of
from hermes.cli.commands.search import add_search
from hermes.cli.output import count
from hermes.cli.parser import add_session
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    from hermes.cli.answered import Answer
    from hermes.cli.client import AdminClient
    from hermes.cli.parser import Commands


def add_subcommands(actions: Commands) -> None:
    add_search(actions, "hermes sessions search")
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


def _age(text: str) -> float:
    """Return seconds. A date would be ambiguous for something that deletes."""
    from hermes.domain.read.log_line import parse_span

    if (span_s := parse_span(text)) is None:
        raise argparse.ArgumentTypeError(f"expected a time like 12h or 90d, found {text[:40]!r}")
    return span_s


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
