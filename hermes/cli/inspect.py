"""`hermes ps`, `show`, `tail` and `why`: looking into a running daemon."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from hermes.cli.output import duration, moment, one_line, print_json, print_table, printable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.cli.client import AdminClient
    from hermes.cli.parser import Commands

_PAGE = 100


def add_commands(commands: Commands) -> None:
    ps = commands.add(
        "ps",
        _ps,
        "List the live actors of the daemon, or the stored sessions.",
        examples="  hermes ps\n  hermes ps --sessions --limit 200\n  hermes ps --json | jq '.actors[].name'",
        json=True,
    )
    ps.add_argument("--sessions", action="store_true", help="list sessions, the last active first")
    ps.add_argument("--limit", type=int, default=50, metavar="N", help="how many sessions (default: 50)")
    show = commands.add(
        "show",
        _show,
        "Show one session whole. Its state and why, its lineage, its counters, the end of its transcript.",
        examples="  hermes show 20260102_030405_1a2b3c4d\n  hermes show 20260102_030405_1a2b3c4d --tail 50",
        json=True,
    )
    show.add_argument("session", metavar="SESSION", help="any id that the session ever had")
    show.add_argument("--tail", type=int, default=10, metavar="N", help="how many messages (default: 10)")
    tail = commands.add(
        "tail",
        _tail,
        "Follow what happens, in one session or in all. Ctrl-C ends it; --json has the pieces of answers, too.",
        examples="  hermes tail\n  hermes tail 20260102_030405_1a2b3c4d --json | jq .event",
        json=True,
    )
    tail.add_argument("session", metavar="SESSION", nargs="?", help="only what happens in this one")
    why = commands.add(
        "why",
        _why,
        "Explain in plain words why a session is in its state.",
        examples="  hermes why 20260102_030405_1a2b3c4d",
        json=True,
    )
    why.add_argument("session", metavar="SESSION", help="any id that the session ever had")


def _ps(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import connect

    client = connect(environ)
    if args.sessions:
        sessions = _sessions(client, args.limit)
        if args.json:
            print_json({"sessions": sessions})
        else:
            _print_sessions(sessions)
        return 0
    actors = client.get("/actors")
    if args.json:
        print_json(actors)
    else:
        _print_actors(actors["actors"])
    return 0


def _sessions(client: AdminClient, limit: int) -> list[dict[str, Any]]:
    sessions: list[dict[str, Any]] = []
    after = None
    while len(sessions) < limit:
        page = client.get("/sessions", limit=min(_PAGE, limit - len(sessions)), after=after)["sessions"]
        if not page:
            break
        sessions += page
        after = page[-1]["id"]
    return sessions


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
    print_table(["KIND", "NAME", "STATE", "MAIL", "OLDEST", "HANDLED", "SLOWEST", "AGE", "LAST ERROR"], rows)


def _print_sessions(sessions: list[dict[str, Any]]) -> None:
    rows = [
        [
            session["id"],
            session["phase"],
            moment(session["active_at"]),
            str(session["messages"]),
            str(session["turns"]),
            str(session["queued"]),
            session["platform"],
            session["reason"] or "-",
        ]
        for session in sessions
    ]
    print_table(["SESSION", "PHASE", "ACTIVE", "MESSAGES", "TURNS", "QUEUED", "PLATFORM", "REASON"], rows)


def _show(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import connect, session_path

    view = connect(environ).get(session_path(args.session), tail=args.tail)
    if args.json:
        print_json(view)
        return 0
    for name, value in _facts(view):
        print(f"{name + ':':<11} {one_line(value)}")
    for message in view["transcript"]:
        print(f"\n{moment(message['at'])}  {one_line(str(message['role']))}")
        print(printable(str(message["content"] or "")))
    return 0


def _facts(view: Mapping[str, Any]) -> list[tuple[str, str]]:
    session = view["session"]
    usage, failure = session["usage"], session["last_failure"]
    facts = [
        ("session", session["id"]),
        ("key", session["key"]),
        ("phase", f"{session['phase']} since {moment(session['since'])}"),
        ("why", view["why"]),
        ("in memory", f"yes, {view['mailbox']} in its mailbox" if view["live"] else "no"),
        ("platform", session["platform"]),
        ("created", moment(session["created_at"])),
        ("active", moment(session["active_at"])),
        ("counted", f"{session['messages']} messages, {session['turns']} turns, {session['queued']} queued"),
        ("tokens", f"{usage['prompt_tokens']} in, {usage['completion_tokens']} out"),
        ("turn", session["running_turn"] or ""),
        ("lineage", " -> ".join(view["lineage"]) if len(view["lineage"]) > 1 else ""),
        ("failure", f"{failure['kind']}: {failure['message']}" if failure else ""),
    ]
    return [(name, value) for name, value in facts if value]


def _tail(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from urllib.parse import urlencode

    from hermes.cli.client import connect

    path = f"/events?{urlencode({'session': args.session})}" if args.session else "/events"
    for event, data in connect(environ).stream_sse("GET", path):
        fields = json.loads(data)
        if args.json:
            print(json.dumps({"event": event, **fields}, ensure_ascii=False), flush=True)
        elif event != "text_delta":  # the whole answer follows
            print(f"{time.strftime('%H:%M:%S')}  {event:<14} {_detail(fields)}", flush=True)
    return 0


def _detail(fields: Mapping[str, Any]) -> str:
    session = fields.get("session", "")
    rest = (
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in fields.items()
        if name != "session"
    )
    return one_line(" ".join([session, *rest]))


def _why(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import connect, session_path

    answer = connect(environ).get(f"{session_path(args.session)}/why")
    if args.json:
        print_json(answer)
    else:
        print(printable(answer["why"]))
    return 0
