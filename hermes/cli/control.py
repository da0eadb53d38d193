"""`hermes stop`, `end`, `suspend`, `resume` and `dead-letters`: what an operator can do to a running daemon."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from hermes.cli.output import count, moment, one_line, print_json, print_table
from hermes.cli.parser import Commands, session_id
from hermes.errors import HermesError, NotRunningError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from hermes.cli.client import AdminClient
    from hermes.cli.parser import Parser
    from hermes.home import Home

_POLL_S = 0.05
_PATIENCE_S = 1.0
_CHANGED = {
    "end": "Ended {id} for good ({reason}); the next message starts a fresh session.",
    "suspend": "Suspended {id} ({reason}) until `hermes resume {id}`; the next message starts a fresh session.",
    "resume": "Resumed {id}; it is {phase} now and takes messages again.",
}


class StillStoppingError(HermesError):
    exit_code = 75


def add_commands(commands: Commands) -> None:
    stop = commands.add(
        "stop",
        _stop,
        "Stop the daemon, or the running turn of one session. Waits until the daemon is gone.",
        examples="  hermes stop\n  hermes stop 20260102_030405_1a2b3c4d",
        json=True,
    )
    stop.add_argument(
        "session", type=session_id, metavar="SESSION", nargs="?", help="stop only what this one is doing"
    )
    stop.add_argument(
        "--timeout", type=float, default=60, metavar="S", help="seconds to wait for the daemon (default: 60)"
    )
    _add_reason(stop)
    for verb, about in (
        ("end", "End a session for good. Its transcript stays; its next message starts a fresh one."),
        (
            "suspend",
            "Suspend a session. Its transcript stays; the next message starts a fresh one until it is resumed.",
        ),
        ("resume", "Take a suspended, interrupted or parked session up again."),
    ):
        examples = f"  hermes {verb} 20260102_030405_1a2b3c4d --reason 'asked for by mail'"
        parser = commands.add(verb, _change(verb), about, examples=examples, json=True)
        parser.add_argument("session", type=session_id, metavar="SESSION", help="any id that the session ever had")
        _add_reason(parser)
    _add_dead_letters(commands)


def _add_reason(parser: Parser) -> None:
    parser.add_argument(
        "--reason", default="asked for on the command line", metavar="TEXT", help="goes into the journal"
    )


def _add_dead_letters(commands: Commands) -> None:
    letters = commands.add(
        "dead-letters",
        _dead_letters,
        "List or replay messages that were set aside. Each had crashed its session twice.",
        examples="  hermes dead-letters\n  hermes dead-letters replay 1f2e3d",
        json=True,
    )
    replay = Commands(letters, required=False).add(
        "replay", _replay, "Give a dead letter to its session once more.", json=True
    )
    replay.add_argument("id", metavar="ID", help="as listed by `hermes dead-letters`")


def _stop(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.home import Home

    return _stop_turn(args, environ) if args.session else _stop_daemon(args, Home.from_environ(environ))


def _stop_turn(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import connect, session_path

    client, path = connect(environ), session_path(args.session)
    turn = client.get(path, tail=0)["session"]["running_turn"]
    answer = client.post(f"{path}/stop", {"reason": args.reason})
    if args.json:
        print_json(answer)
    else:
        print(one_line(_stopped(turn, answer["session"])))
    return 0


def _stopped(turn: str | None, session: Mapping[str, Any]) -> str:
    if turn is None:
        return f"Nothing was running in {session['id']}."
    follows = f"; turn {session['running_turn']} runs now" if session["running_turn"] else ""
    queued = session["queued"]
    waiting = f"{count(queued, 'message')} wait{'s' if queued == 1 else ''}" if queued else "nothing waits"
    return f"Stopped turn {turn} of {session['id']}{follows}; {waiting}."


def _stop_daemon(args: argparse.Namespace, home: Home) -> int:
    from hermes.cli.client import AdminClient

    client = AdminClient(home.socket)
    pid = client.get("/info").get("pid")
    client.post("/stop", {"reason": args.reason})
    deadline = time.monotonic() + args.timeout
    while not _gone(client, home):
        if time.monotonic() > deadline:
            raise StillStoppingError(f"the daemon (pid {pid}) is still stopping after {args.timeout:g} s")
        time.sleep(_POLL_S)
    if args.json:
        print_json({"stopped": True, "pid": pid})
    else:
        print(f"The daemon on {home.data_dir} (pid {pid}) has stopped.")
    return 0


def _gone(client: AdminClient, home: Home) -> bool:
    """Its socket closes early; only the lock says that everything is written and the home is free."""
    from hermes.home import is_free

    try:
        client.get("/info", timeout_s=_PATIENCE_S)
    except NotRunningError:
        return is_free(home)
    except HermesError:
        return False  # too busy stopping to answer
    return False


def _change(verb: str) -> Callable[[argparse.Namespace, Mapping[str, str]], int]:
    def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
        from hermes.cli.client import connect, session_path

        answer = connect(environ).post(f"{session_path(args.session)}/{verb}", {"reason": args.reason})
        if args.json:
            print_json(answer)
        else:
            print(one_line(_CHANGED[verb].format(**answer["session"])))
        return 0

    return run


def _dead_letters(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import connect

    answer = connect(environ).get("/dead-letters")
    if args.json:
        print_json(answer)
    elif answer["dead_letters"]:
        rows = [
            [letter["id"], moment(letter["at"]), letter["session"], letter["turn"], letter["problem"]]
            for letter in answer["dead_letters"]
        ]
        print_table(["ID", "SET ASIDE", "SESSION", "TURN", "PROBLEM"], rows)
    else:
        print("There are no dead letters.")
    return 0


def _replay(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from urllib.parse import quote

    from hermes.cli.client import connect

    answer = connect(environ).post(f"/dead-letters/{quote(args.id, safe='')}/replay")
    if args.json:
        print_json(answer)
    else:
        print(f"{one_line(args.id)} was given to its session again.")
    return 0
