"""What an operator can do to a running daemon and its sessions.

`hermes stop`, `restart`, `end`, `suspend`, `resume`, `compress` and `delete`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from hermes.cli.commands.stop import in_the_background, processes_run, restart_daemon, stop_daemon
from hermes.cli.output import count, one_line, print_json, say
from hermes.cli.parser import add_session, seconds
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from hermes.cli.client import AdminClient
    from hermes.cli.parser import ArgumentParser, Commands

_SESSION = "20260102_030405_1a2b3c4d"
_CLOSED = ("ended", "suspended")
_CHANGED = {
    "end": "Ended {id} for good ({reason}); the next message starts a fresh session.",
    "suspend": "Suspended {id} ({reason}) until `hermes resume {id}`; the next message starts a fresh session.",
    "resume": "Resumed {id}; it is {phase} now and takes messages again.",
}
_BESIDE = (
    "Resumed {id}; it is {phase} now and takes what is said under its id (`hermes chat -r {id}`). {heir} had taken "
    "over meanwhile and stays as it is{chat}."
)
_CHAT = ": the chat goes on talking to that one until somebody says /resume {id} there"
_WITHOUT_A_CHAT = ("api", "cli")  # platforms where whoever talks names the session


def add_commands(commands: Commands) -> None:
    stop = commands.add(
        "stop",
        _stop,
        "Stop the daemon, or the running turn of one session. Waits until the daemon is gone. Exit code 1 if none\n"
        "runs or it did not come to the end of its stop, 75 if it is still there after --timeout.",
        examples=f"  hermes stop\n  hermes stop {_SESSION}",
        json=True,
    )
    add_session(stop, nargs="?", help="stop only what this one is doing")
    stop.add_argument(
        "--timeout", type=seconds, default=60, metavar="S", help="seconds to wait for the daemon (default: 60)"
    )
    _add_reason(stop)
    restart = commands.add(
        "restart",
        _restart,
        "Restart the daemon: what runs gets a while to finish, the rest goes on afterwards. Waits until it is ready.",
        examples="  hermes restart\n  hermes restart --reason 'new version'",
        json=True,
    )
    restart.add_argument(
        "--timeout", type=seconds, default=60, metavar="S", help="seconds to wait for the daemon (default: 60)"
    )
    _add_reason(restart)
    for verb, about in (
        ("end", "End a session for good. Its transcript stays; its next message starts a fresh one."),
        (
            "suspend",
            "Suspend a session. Its transcript stays; the next message starts a fresh one until it is resumed.",
        ),
        ("resume", "Take a suspended, interrupted or parked session up again."),
    ):
        examples = f"  hermes {verb} {_SESSION} --reason 'asked for by mail'"
        parser = commands.add(verb, _change(verb), about, examples=examples, json=True)
        add_session(parser)
        _add_reason(parser)
    compress = commands.add(
        "compress",
        _compress,
        "Replace the earlier part of a conversation by a summary. It goes on under a new id; the old one finds it.",
        examples=f"  hermes compress {_SESSION}\n  hermes compress - the decisions",
        json=True,
    )
    add_session(compress)
    compress.add_argument("topic", nargs="*", metavar="TOPIC", help="what the summary should dwell on")
    delete = commands.add(
        "delete",
        _delete,
        "Delete a whole conversation. The session goes with everything it grew from or into; there is no way back.",
        examples=f"  hermes delete {_SESSION}\n  hermes delete {_SESSION} --yes",
        json=True,
    )
    add_session(delete)
    delete.add_argument("--yes", action="store_true", help="do not ask")


def _add_reason(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--reason", default="asked for on the command line", metavar="TEXT", help="goes into the journal"
    )


def _stop(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home

    return _stop_turn(args, environ) if args.session else stop_daemon(args, Home.from_environ(environ))


def _restart(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home

    return restart_daemon(args, Home.from_environ(environ))


def _stop_turn(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import connect, session_path
    from hermes.cli.session_lookup import meant_by

    client = connect(environ)
    path = session_path(meant_by(client, args.session))
    before = client.get(path, tail=0)["session"]
    answer = client.post(f"{path}/stop", {"reason": args.reason})
    if args.json:
        print_json(answer)
    else:
        say(one_line(_stopped(before, answer["session"])))
    return 0


def _stopped(before: Mapping[str, Any], session: Mapping[str, Any]) -> str:
    turn = before["running_turn"]
    if turn is None and not before.get("compressing"):
        return f"Nothing was running in {session['id']}."
    follows = f"; turn {session['running_turn']} runs now" if session["running_turn"] else ""
    queued = session["queued"]
    waiting = f"{count(queued, 'message')} wait{'s' if queued == 1 else ''}" if queued else "nothing waits"
    what = "the summary" if turn is None else f"turn {turn}"
    return f"Stopped {what} of {session['id']}{follows}; {waiting}."


def _change(verb: str) -> Callable[[argparse.Namespace, Mapping[str, str]], int]:
    def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
        from hermes.cli.client import connect, session_path
        from hermes.cli.session_lookup import meant_by

        client = connect(environ)
        path = session_path(meant_by(client, args.session))
        heir = _heir(client, path) if verb == "resume" else ""
        answer = client.post(f"{path}/{verb}", {"reason": args.reason})
        if args.json:
            print_json({**answer, "took_over": heir} if heir else answer)
            return 0
        session = answer["session"]
        if heir:
            chat = "" if session["platform"] in _WITHOUT_A_CHAT else _CHAT.format(**session)
            say(one_line(_BESIDE.format(heir=heir, chat=chat, **session)))
            return 0
        left = len(in_the_background(client, session["id"])) if session["phase"] in _CLOSED else 0
        on = f" {processes_run(left)} on in its background; `hermes ps --running` lists what runs." if left else ""
        say(one_line(_CHANGED[verb].format(**session) + on))
        return 0

    return run


def _heir(client: AdminClient, path: str) -> str:
    """The session in which the talk went on after this one was suspended; empty if there is none."""
    from hermes.cli.client import AdminError, session_path

    try:
        left = client.get(path, tail=0, exact=1)["session"]["successor"]
        return str(client.get(session_path(left), tail=0)["session"]["id"]) if left else ""
    except AdminError as error:
        if error.status != 404:
            raise
        return ""  # deleted since; or there is no such session, which the daemon says when it is told to resume it


def _compress(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.chat.conversation import send
    from hermes.cli.client import connect
    from hermes.cli.session_lookup import meant_by

    client = connect(environ)
    session = meant_by(client, args.session)
    answer = send(client, session, "compress", {"topic": " ".join(args.topic)} if args.topic else {})
    if args.json:
        print_json(answer)
    else:
        say(
            one_line(
                f"{session} is being summarised; what is said meanwhile waits. `hermes why {session}` tells more."
            )
        )
    return 0


def _delete(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import connect, session_path
    from hermes.cli.session_lookup import meant_by

    client = connect(environ)
    session = meant_by(client, args.session)
    if not args.yes and not _is_sure(_family(client, session)):
        raise HermesError(f"nothing was deleted; `hermes delete {session} --yes` does it without asking")
    answer = client.delete(session_path(session))
    if args.json:
        print_json(answer)
    else:
        say(f"Deleted the whole conversation of {one_line(session)}.")
    return 0


def _family(client: AdminClient, session: str) -> list[Mapping[str, Any]]:
    """What goes with a session, the oldest first: what it grew from or into. A branch's origin that goes on stays."""
    from hermes.cli.client import session_path

    known: dict[str, Mapping[str, Any]] = {}

    def look(name: str) -> Mapping[str, Any]:
        if name not in known:
            known[name] = client.get(session_path(name), tail=0, exact=1)["session"]
        return known[name]

    family: dict[str, Mapping[str, Any]] = {}
    unseen = [session]
    while unseen:
        found = look(unseen.pop())
        if found["id"] in family:
            continue
        family[found["id"]] = found
        unseen.extend(filter(None, (found["successor"],)))
        parent = _looked_up(look, found["parent"])
        if parent is not None and (parent["phase"] in _CLOSED or parent["successor"] == found["id"]):
            unseen.append(parent["id"])
    return sorted(family.values(), key=lambda each: float(each["created_at"]))


def _looked_up(look: Callable[[str], Mapping[str, Any]], name: str | None) -> Mapping[str, Any] | None:
    from hermes.cli.client import AdminError

    if name is None:
        return None
    try:
        return look(name)
    except AdminError as error:
        if error.status != 404:
            raise
        return None  # deleted before


def _is_sure(family: list[Mapping[str, Any]]) -> bool:
    if not sys.stdin.isatty():
        return False
    say(f"This deletes a whole conversation: {count(len(family), 'session')}.")
    for each in family:
        about = f" {each['title']}" if each.get("title") else ""
        say("  " + one_line(f"{each['id']} ({each['phase']}, {count(each['messages'], 'message')}){about}"))
    try:
        return input("There is no way back. Delete it? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        print()
        return False
