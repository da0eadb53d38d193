"""`hermes ps`: what runs now. Sessions with open work and background processes, or all actors."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import show
from hermes.cli.output import duration, one_line, print_table, print_text, shortened
from hermes.cli.parser import CHILDREN, positive

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.cli.client import AdminClient
    from hermes.cli.parser import Commands

_DOING = {
    "model": "waits for the model",
    "tools": "runs",
    "summary": "is being compressed",
    "approval": "waits for approval:",
    "question": "asks:",
    "queued": "has messages to answer",
    "interrupted": "was interrupted",
    "none": "has open work",
}


def add_commands(commands: Commands) -> None:
    ps = commands.add(
        "ps",
        _ps,
        "List what runs: sessions with open work, what they do and for how long, and background processes.",
        examples="  hermes ps\n  hermes ps --actors\n  hermes ps --sessions --limit 200\n  hermes ps --processes\n"
        "  hermes ps --running\n  hermes ps proc_0123456789ab\n"
        "  hermes ps --json | jq '.sessions[].id'",
        json=True,
    )
    which = ps.add_mutually_exclusive_group()
    which.add_argument("--actors", action="store_true", help="list the live actors of the daemon")
    which.add_argument("--sessions", action="store_true", help="list stored sessions, the last active first")
    which.add_argument("--processes", action="store_true", help="list the background processes of all sessions")
    which.add_argument("--running", action="store_true", help="list only running background processes")
    which.add_argument(
        "processes_named",
        nargs="*",
        default=(),
        metavar="PROCESS",
        help="explain the state of these background processes",
    )
    ps.add_argument("--children", action="store_true", help=CHILDREN)
    ps.add_argument("--limit", type=positive, metavar="N", help="how many to list (default: 50 sessions, else all)")


def _ps(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    if args.sessions:
        from hermes.cli.inspection.inspect import list_sessions

        return list_sessions(args, environ)
    from hermes.cli.client import connect

    client = connect(environ)
    info = client.info()
    if args.processes or args.running or args.processes_named:
        from hermes.cli.commands.processes import show_processes

        return show_processes(args, client, resets=info.get("resets", True))
    return _list_actors(args, client) if args.actors else _list_running(args, client)


def _list_running(args: argparse.Namespace, client: AdminClient) -> int:
    found = client.get("/running")
    open_work = [session for session in found["sessions"] if args.children or not session.get("child")]
    sessions, processes = open_work[: args.limit], found["processes"][: args.limit]
    return show(args, {"sessions": sessions, "processes": processes}, lambda: _print_running(sessions, processes))


def _print_running(sessions: list[dict[str, Any]], processes: list[dict[str, Any]]) -> None:
    if sessions:
        _print_sessions(sessions)
    else:
        print("No session has open work; `hermes sessions` lists the stored ones.")
    if processes:
        print()
        _print_processes(processes)


def _print_sessions(sessions: list[dict[str, Any]]) -> None:
    now = time.time()
    rows = [
        [
            session["id"],
            shortened(f"{_DOING.get(session['doing'], session['doing'])} {', '.join(session['what'])}".strip(), 60),
            duration(max(0.0, now - session["since"])),
            session["platform"],
            shortened(session["title"] or session["preview"] or "-", 60),
        ]
        for session in sessions
    ]
    print_table(["SESSION", "DOING", "FOR", "PLATFORM", "ABOUT"], rows, drop=("PLATFORM",), numbers=("FOR",))
    if any(session["doing"] in ("approval", "question") for session in sessions):
        print_text("`hermes approve ID`, `hermes deny ID` and `hermes answer ID TEXT` answer a session that waits.")


def _print_processes(processes: list[dict[str, Any]]) -> None:
    rows = [
        [each["id"], duration(each["age_s"]), each["session_id"], shortened(one_line(each["command"]))]
        for each in processes
    ]
    print_table(["PROCESS", "FOR", "SESSION", "COMMAND"], rows, drop=("SESSION",), numbers=("FOR",))


def _list_actors(args: argparse.Namespace, client: AdminClient) -> int:
    actors = client.get("/actors")["actors"][: args.limit]
    return show(args, {"actors": actors}, lambda: _print_actors(actors))


def _print_actors(actors: list[dict[str, Any]]) -> None:
    rows = [
        [
            actor["kind"],
            actor["name"],
            actor["state"],
            str(actor["mailbox"]),
            duration(actor["oldest_s"]) if actor["mailbox"] else "-",
            str(actor["handled"]),
            duration(actor["slowest_s"]),
            duration(actor["age_s"]),
            actor["last_error"] or "-",
        ]
        for actor in actors
    ]
    columns = ["KIND", "NAME", "STATE", "MAIL", "OLDEST", "HANDLED", "SLOWEST", "AGE", "LAST ERROR"]
    numbers = ("MAIL", "OLDEST", "HANDLED", "SLOWEST", "AGE")
    print_table(columns, rows, drop=("SLOWEST", "OLDEST", "HANDLED", "KIND"), alarm="LAST ERROR", numbers=numbers)
