"""`hermes sessions`, `show` and `why`: stored sessions, also without a daemon. `hermes context` needs one."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import reads_records
from hermes.cli.commands.control import declare_delete
from hermes.cli.commands.session_upkeep import add_subcommands
from hermes.cli.output import ago, count, moment, one_line, print_table, print_text, printable, shortened
from hermes.cli.parser import CHILDREN, Commands, add_session, positive, whole
from hermes.cli.upkeep.exchange import declare_export

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.cli.answered import Answer
    from hermes.cli.parser import ArgumentParser
    from hermes.cli.session_lookup import Records

_SESSIONS = 50
_MAX_ABOUT = 100  # sessions without a title whose first message is read: each costs a request
_TOOL_LINES = 8  # of a tool's result
_SESSION = "20260102_030405_1a2b3c4d"


def add_commands(commands: Commands) -> None:
    sessions = commands.add(
        "sessions",
        list_sessions,
        "List stored sessions, the last active first. Same as `hermes ps --sessions`.",
        examples="  hermes sessions\n  hermes sessions --waiting\n  hermes sessions --limit 5 --json",
        json=True,
    )
    actions = Commands(sessions, required=False)
    listed = actions.add("list", list_sessions, "List stored sessions, the last active first.", json=True)
    for parser in (sessions, listed):
        _add_limit(parser, f"how many to list (default: {_SESSIONS})")
        parser.add_argument("--waiting", action="store_true", help="only sessions that wait for a person's answer")
        parser.add_argument("--children", action="store_true", help=CHILDREN)
    for each in (actions, commands):
        declare_show(each)
    add_subcommands(actions)
    declare_export(actions)
    declare_delete(actions)
    why = commands.add(
        "why",
        _why,
        "Explain why a session is in its current state.",
        examples=f"  hermes why {_SESSION}\n  hermes why -",
        json=True,
    )
    add_session(why)
    _add_exact(why)
    context = commands.add(
        "context",
        _context,
        "Show what fills the context window of a session, by part. Needs a running daemon.",
        examples=f"  hermes context {_SESSION}\n  hermes context - --json",
        json=True,
    )
    add_session(context)


def declare_show(commands: Commands) -> None:
    shows = commands.add(
        "show",
        _show,
        "Show one session: state and reason, lineage, counters, and the end of the transcript.",
        examples=f"  hermes show {_SESSION}\n  hermes show 1a2b --tail 50\n  hermes show -",
        json=True,
    )
    add_session(shows)
    shows.add_argument("--tail", type=whole, default=10, metavar="N", help="how many messages to show (default: 10)")
    _add_exact(shows)


def _add_exact(parser: ArgumentParser) -> None:
    parser.add_argument("--exact", action="store_true", help="show this exact session, do not follow its successor")


def _add_limit(parser: ArgumentParser, about: str) -> None:
    parser.add_argument("--limit", type=positive, metavar="N", help=about)


# ---------------------------------------------------------------- lists


@reads_records
def list_sessions(args: argparse.Namespace, records: Records) -> Answer:
    from hermes.cli.session_lookup import recent

    limit, only_waiting = args.limit or _SESSIONS, getattr(args, "waiting", False)
    sessions = _waiting(records, limit) if only_waiting else list(recent(records, limit, children=args.children))
    if sessions:
        return {"sessions": sessions}, lambda: _print_sessions(records, sessions, only_waiting=only_waiting)
    none = (
        "No session waits for an answer." if only_waiting else "There are no sessions yet; `hermes chat` starts one."
    )
    return {"sessions": sessions}, none


def _waiting(records: Records, limit: int) -> list[dict[str, Any]]:
    """Return waiting sessions, the last active first, each with what it waits for."""
    views = [records.view(name, tail=0, exact=True) for name in records.waiting()]
    found = ({**view["session"], "waits_for": view.get("waits_for", "")} for view in views)
    return sorted(found, key=lambda each: -each["active_at"])[:limit]


def _print_sessions(records: Records, sessions: list[dict[str, Any]], *, only_waiting: bool) -> None:
    about = {session["id"]: session.get("title") or session.get("preview") for session in sessions}
    for name in islice((name for name, words in about.items() if not words), _MAX_ABOUT):
        about[name] = records.beginning(name)
    rows = [
        [
            session["id"],
            _phase(session),
            ago(session["active_at"]),
            str(session["messages"]),
            str(session["turns"]),
            str(session["queued"]),
            session["platform"],
            shortened(about[session["id"]] or "-"),
            *([shortened(session["waits_for"] or "-")] if only_waiting else []),
        ]
        for session in sessions
    ]
    columns = ["SESSION", "PHASE", "ACTIVE", "MESSAGES", "TURNS", "QUEUED", "PLATFORM", "ABOUT"]
    drop: tuple[str, ...] = ("QUEUED", "TURNS", "PLATFORM", "MESSAGES", "ACTIVE")
    if only_waiting:
        columns, drop = [*columns, "WAITS FOR"], (*drop, "ABOUT")
    print_table(columns, rows, drop=drop, numbers=("ACTIVE", "MESSAGES", "TURNS", "QUEUED"))
    if only_waiting:
        print_text("`hermes approve ID show` prints the whole command that needs approval.")


def _phase(session: Mapping[str, Any]) -> str:
    """Return the phase, marked if the last turn failed. A stopped turn is not a failure."""
    failure = session["last_failure"]
    is_failed = session["phase"] == "idle" and failure and failure["kind"] != "cancelled"
    return "idle, failed" if is_failed else str(session["phase"])


# ---------------------------------------------------------------- one session


@reads_records
def _show(args: argparse.Namespace, records: Records) -> Answer:
    from hermes.cli.session_lookup import resolve_id

    view = records.view(resolve_id(records, args.session), tail=args.tail, exact=args.exact)
    return view, lambda: _print_session(view)


def _print_session(view: Mapping[str, Any]) -> None:
    for name, value in _facts(view):
        print_text(f"{name + ':':<11} {one_line(value)}", indent=" " * 12)
    print_text("\n  ".join(["why:", *printable(view["why"]).splitlines()]))
    for message in view["transcript"]:
        who = "note" if message.get("note") else one_line(str(message["role"]))
        more = message.get("by") or message.get("answered")
        print(f"\n{moment(message['at'])}  {who}{f' ({one_line(more)})' if more else ''}")
        print_text(message_text(message))


def message_text(message: Mapping[str, Any]) -> str:
    from hermes.tui.view_model import content_text

    lines = printable(content_text(message["content"])).splitlines()
    for call in message.get("tool_calls") or ():
        function = call.get("function", {})
        lines.append(shortened(f"-> {function.get('name')} {function.get('arguments')}"))
    if message["role"] != "tool" or len(lines) <= _TOOL_LINES or not sys.stdout.isatty():
        return "\n".join(lines)
    return "\n".join([*lines[:_TOOL_LINES], f"({count(len(lines) - _TOOL_LINES, 'more line')})"])


def _facts(view: Mapping[str, Any]) -> list[tuple[str, str]]:
    session = view["session"]
    usage, failure = session["usage"], session["last_failure"]
    facts = [
        ("session", session["id"]),
        ("title", view.get("preferences", {}).get("title") or ""),
        ("key", session["key"]),
        ("phase", f"{session['phase']} since {moment(session['since'])}"),
        ("in memory", f"yes, {view['mailbox']} in its mailbox" if view["live"] else "no"),
        ("platform", session["platform"]),
        ("created", moment(session["created_at"])),
        ("active", moment(session["active_at"])),
        ("counted", f"{count(session['messages'], 'message')}, {count(session['turns'], 'turn')}"),
        ("waiting", count(session["queued"], "message") if session["queued"] else ""),
        ("tokens", f"{usage['prompt_tokens']} in, {usage['completion_tokens']} out"),
        ("turn", ", ".join(filter(None, (session["running_turn"], session.get("role"))))),
        ("lineage", " -> ".join(view["lineage"]) if len(view["lineage"]) > 1 else ""),
        ("failure", f"{failure['kind']}: {failure['message']}" if failure else ""),
    ]
    return [(name, value) for name, value in facts if value]


@reads_records
def _why(args: argparse.Namespace, records: Records) -> Answer:
    from hermes.cli.session_lookup import resolve_id

    view = records.view(resolve_id(records, args.session), tail=0, exact=args.exact)
    answer = {"session_id": view["session"]["id"], "why": view["why"]}
    return answer, lambda: print_text(printable(answer["why"]))


def _context(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import AdminClient, session_path
    from hermes.cli.output import print_json
    from hermes.cli.session_lookup import DaemonRecords, resolve_id
    from hermes.config.home import Home
    from hermes.domain.read.context_report import ContextPart, ContextReport, PartSize
    from hermes.services.context.context_text import context_table

    client = AdminClient(Home.from_environ(environ).socket)
    found = client.get(f"/api{session_path(resolve_id(DaemonRecords(client), args.session))}/context")
    if args.json:
        print_json(found)
        return 0
    parts = tuple(
        PartSize(part=ContextPart(each["part"]), tokens=each["tokens"], items=each["items"])
        for each in found["parts"]
    )
    report = ContextReport(session=found["session_id"], parts=parts, window=found["window"], counted=found["counted"])
    print_text(context_table(report)[0])
    return 0
