"""`hermes ps`, `show`, `tail` and `why`: looking into a running daemon."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from hermes.cli.output import count, duration, moment, one_line, print_json, print_table, printable, shortened
from hermes.cli.parser import positive, session_id
from hermes.errors import HermesError, NotRunningError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.cli.client import AdminClient
    from hermes.cli.parser import Commands

_PAGE = 100
_SESSIONS = 50


def add_commands(commands: Commands) -> None:
    ps = commands.add(
        "ps",
        _ps,
        "List the live actors of the daemon, or the stored sessions. `hermes ps --sessions` finds a session's id.",
        examples="  hermes ps\n  hermes ps --sessions --limit 200\n  hermes ps --json | jq '.actors[].name'",
        json=True,
    )
    ps.add_argument("--sessions", action="store_true", help="list sessions and their ids, the last active first")
    ps.add_argument(
        "--limit", type=positive, metavar="N", help=f"how many (default: {_SESSIONS} sessions, all actors)"
    )
    show = commands.add(
        "show",
        _show,
        "Show one session whole. Its state and why, its lineage, its counters, the end of its transcript.",
        examples="  hermes show 20260102_030405_1a2b3c4d\n  hermes show 20260102_030405_1a2b3c4d --tail 50",
        json=True,
    )
    show.add_argument("session", type=session_id, metavar="SESSION", help="any id that the session ever had")
    show.add_argument("--tail", type=int, default=10, metavar="N", help="how many messages (default: 10)")
    tail = commands.add(
        "tail",
        _tail,
        "Follow what happens, in one session or in all. Ctrl-C ends it; --json has whole answers and their pieces.",
        examples="  hermes tail\n  hermes tail 20260102_030405_1a2b3c4d --json | jq .event",
        json=True,
    )
    tail.add_argument("session", type=session_id, metavar="SESSION", nargs="?", help="only what happens in this one")
    why = commands.add(
        "why",
        _why,
        "Explain in plain words why a session is in its state.",
        examples="  hermes why 20260102_030405_1a2b3c4d",
        json=True,
    )
    why.add_argument("session", type=session_id, metavar="SESSION", help="any id that the session ever had")


def _ps(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import connect

    client = connect(environ)
    if args.sessions:
        sessions = _sessions(client, args.limit or _SESSIONS)
        if args.json:
            print_json({"sessions": sessions})
        else:
            _print_sessions(sessions)
        return 0
    actors = client.get("/actors")["actors"][: args.limit]
    if args.json:
        print_json({"actors": actors})
    else:
        _print_actors(actors)
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
    print("why:", *printable(view["why"]).splitlines(), sep="\n  ")
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
        ("in memory", f"yes, {view['mailbox']} in its mailbox" if view["live"] else "no"),
        ("platform", session["platform"]),
        ("created", moment(session["created_at"])),
        ("active", moment(session["active_at"])),
        ("counted", f"{count(session['messages'], 'message')}, {count(session['turns'], 'turn')}"),
        ("waiting", count(session["queued"], "message") if session["queued"] else ""),
        ("tokens", f"{usage['prompt_tokens']} in, {usage['completion_tokens']} out"),
        ("turn", session["running_turn"] or ""),
        ("lineage", " -> ".join(view["lineage"]) if len(view["lineage"]) > 1 else ""),
        ("failure", f"{failure['kind']}: {failure['message']}" if failure else ""),
    ]
    return [(name, value) for name, value in facts if value]


def _tail(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from urllib.parse import urlencode

    from hermes.cli.client import LostError, connect

    path = f"/events?{urlencode({'session': args.session})}" if args.session else "/events"
    try:
        for event, data in connect(environ).stream_sse("GET", path):
            fields = json.loads(data)
            if args.json:
                print(json.dumps({"event": event, **fields}, ensure_ascii=False), flush=True)
            elif event not in ("text_delta", "end"):  # the whole answer follows
                print(f"{_time_of_day(fields)}  {event:<14} {_detail(fields)}", flush=True)
            if event == "end":
                raise HermesError("events came faster than they were read, and some were missed; start it again")
    except LostError:
        pass
    raise NotRunningError("the daemon stopped")


def _time_of_day(fields: Mapping[str, Any]) -> str:
    return time.strftime("%H:%M:%S", time.localtime(fields.get("at")))  # without one: now


def _detail(fields: Mapping[str, Any]) -> str:
    rest = (_worded(name, value) for name, value in fields.items() if name not in ("session", "at"))
    return one_line(" ".join([fields.get("session", ""), *rest]))


def _worded(name: str, value: Any) -> str:
    match name, value:
        case "usage", {"prompt_tokens": read, "completion_tokens": written}:
            return f"({count(read, 'token')} in, {written} out)"
        case "failure", {"kind": kind, "message": message}:
            return f"failed ({kind}): {shortened(message)}"
        case "text", str():
            return f'"{shortened(value)}"'
    return f"{name}={value}"


def _why(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import connect, session_path

    answer = connect(environ).get(f"{session_path(args.session)}/why")
    if args.json:
        print_json(answer)
    else:
        print(printable(answer["why"]))
    return 0
