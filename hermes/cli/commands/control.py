"""`hermes stop`, `restart`, `end`, `suspend`, `resume`, `compress` and `delete`: control of daemon and sessions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import asks_session, confirms, path_of
from hermes.cli.daemon_stop import background_pids, processes_run, restart_daemon, stop_daemon
from hermes.cli.output import count, one_line, print_text
from hermes.cli.parser import add_session, seconds
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from hermes.cli.answered import Answer
    from hermes.cli.client import AdminClient
    from hermes.cli.parser import ArgumentParser, Commands, Run

_SESSION = "20260102_030405_1a2b3c4d"
_CLOSED = ("ended", "suspended")
_CHANGED = {
    "end": "Ended {id} ({reason}). The next message starts a new session.",
    "suspend": "Suspended {id} ({reason}) until `hermes resume {id}`. The next message starts a new session.",
    "resume": "Resumed {id}; it is {phase} now and accepts messages again.",
}
_BESIDE = (
    "Resumed {id}; it is {phase} now and accepts messages sent to its id (`hermes chat -r {id}`). {heir} replaced "
    "it meanwhile and is unchanged{chat}."
)
_CHAT = ": the chat stays with that session until someone sends /resume {id} there"
_WITHOUT_A_CHAT = ("api", "cli")  # platforms where the client names the session


def add_commands(commands: Commands) -> None:
    stop = commands.add(
        "stop",
        _stop,
        "Stop the daemon, or the running turn of one session. Waits until the daemon has exited. Exit code 1 if no\n"
        "daemon runs or it did not stop cleanly, 75 if it still runs after --timeout.",
        examples=f"  hermes stop\n  hermes stop {_SESSION}",
        json=True,
    )
    add_session(stop, nargs="?", help="stop only the running turn of this session")
    stop.add_argument(
        "--timeout", type=seconds, default=60, metavar="S", help="seconds to wait for the daemon (default: 60)"
    )
    _add_reason(stop)
    restart = commands.add(
        "restart",
        _restart,
        "Restart the daemon. Running turns get time to finish; interrupted ones resume afterwards. Waits until it "
        "is ready.",
        examples="  hermes restart\n  hermes restart --reason 'new version'",
        json=True,
    )
    restart.add_argument(
        "--timeout", type=seconds, default=60, metavar="S", help="seconds to wait for the daemon (default: 60)"
    )
    _add_reason(restart)
    for verb, about in (
        ("end", "End a session permanently. Its transcript is kept; the next message starts a new session."),
        (
            "suspend",
            "Suspend a session. Its transcript is kept; until it is resumed, the next message starts a new session.",
        ),
        ("resume", "Resume a suspended, interrupted or parked session."),
    ):
        examples = f"  hermes {verb} {_SESSION} --reason 'asked for by mail'"
        parser = commands.add(verb, _change(verb), about, examples=examples, json=True)
        add_session(parser)
        _add_reason(parser)
    compress = commands.add(
        "compress",
        _compress,
        "Replace the earlier part of a conversation by a summary. It continues under a new id; the old id "
        "leads to it.",
        examples=f"  hermes compress {_SESSION}\n  hermes compress - the decisions",
        json=True,
    )
    add_session(compress)
    compress.add_argument("topic", nargs="*", metavar="TOPIC", help="what the summary should focus on")
    declare_delete(commands)


def declare_delete(commands: Commands) -> None:
    delete = commands.add(
        "delete",
        _delete,
        "Delete a whole conversation. The session, its predecessors and successors are deleted. This cannot be "
        "undone.",
        examples=f"  hermes delete {_SESSION}\n  hermes delete {_SESSION} --yes",
        json=True,
    )
    add_session(delete)
    delete.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def _add_reason(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--reason", default="requested on the command line", metavar="TEXT", help="reason to store in the journal"
    )


def _stop(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home

    return _stop_turn(args, environ) if args.session else stop_daemon(args, Home.from_environ(environ))


def _restart(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home

    return restart_daemon(args, Home.from_environ(environ))


@asks_session
def _stop_turn(args: argparse.Namespace, client: AdminClient, session: str) -> Answer:
    path = path_of("sessions", session)
    before = client.get(path, tail=0)["session"]
    answer = client.post(f"{path}/stop", {"reason": args.reason})
    return answer, _stopped(before, answer["session"])


def _stopped(before: Mapping[str, Any], session: Mapping[str, Any]) -> str:
    turn = before["running_turn"]
    if turn is None and not before.get("compressing"):
        return f"Nothing was running in {session['id']}."
    follows = f"; turn {session['running_turn']} is running now" if session["running_turn"] else ""
    queued = session["queued"]
    waiting = f"{count(queued, 'message')} wait{'s' if queued == 1 else ''}" if queued else "no message waits"
    what = "the summary" if turn is None else f"turn {turn}"
    return f"Stopped {what} of {session['id']}{follows}; {waiting}."


def _change(verb: str) -> Run:
    @asks_session
    def run(args: argparse.Namespace, client: AdminClient, name: str) -> Answer:
        path = path_of("sessions", name)
        heir = _heir(client, path) if verb == "resume" else ""
        answer = client.post(f"{path}/{verb}", {"reason": args.reason})
        session = answer["session"]
        if heir:
            chat = "" if session["platform"] in _WITHOUT_A_CHAT else _CHAT.format(**session)
            return {**answer, "took_over": heir}, _BESIDE.format(heir=heir, chat=chat, **session)
        left = len(background_pids(client, session["id"])) if session["phase"] in _CLOSED else 0
        on = f" {processes_run(left)} on; `hermes ps --running` lists them." if left else ""
        return answer, _CHANGED[verb].format(**session) + on

    return run


def _heir(client: AdminClient, path: str) -> str:
    """Return the session that replaced a suspended one; empty if there is none."""
    from hermes.cli.client import AdminError

    try:
        left = client.get(path, tail=0, exact=1)["session"]["successor"]
        return str(client.get(path_of("sessions", left), tail=0)["session"]["id"]) if left else ""
    except AdminError as error:
        if error.status != 404:
            raise
        return ""  # deleted since, or unknown: then the resume request is refused


@asks_session
def _compress(args: argparse.Namespace, client: AdminClient, session: str) -> Answer:
    from hermes.cli.client import send

    answer = send(client, session, "compress", {"topic": " ".join(args.topic)} if args.topic else {})
    state = f"`hermes why {session}` shows its state"
    return answer, f"Summarising {session}; new messages wait until it is done. {state}."


@asks_session
def _delete(args: argparse.Namespace, client: AdminClient, session: str) -> Answer:
    if not args.yes and not _is_confirmed(_family(client, session)):
        raise HermesError(f"nothing was deleted; `hermes delete {session} --yes` deletes without asking")
    return client.delete(path_of("api", "sessions", session)), f"Deleted the conversation of {session}."


def _family(client: AdminClient, session: str) -> list[Mapping[str, Any]]:
    """Return the sessions that a deletion covers, oldest first. The open origin of a branch is not among them."""
    known: dict[str, Mapping[str, Any]] = {}

    def fetch(name: str) -> Mapping[str, Any]:
        if name not in known:
            known[name] = client.get(path_of("sessions", name), tail=0, exact=1)["session"]
        return known[name]

    family: dict[str, Mapping[str, Any]] = {}
    unseen = [session]
    while unseen:
        found = fetch(unseen.pop())
        if found["id"] in family:
            continue
        family[found["id"]] = found
        unseen.extend(filter(None, (found["successor"],)))
        parent = _find_parent(fetch, found["parent"])
        if parent is not None and (parent["phase"] in _CLOSED or parent["successor"] == found["id"]):
            unseen.append(parent["id"])
    return sorted(family.values(), key=lambda each: float(each["created_at"]))


def _find_parent(fetch: Callable[[str], Mapping[str, Any]], name: str | None) -> Mapping[str, Any] | None:
    from hermes.cli.client import AdminError

    if name is None:
        return None
    try:
        return fetch(name)
    except AdminError as error:
        if error.status != 404:
            raise
        return None


def _is_confirmed(family: list[Mapping[str, Any]]) -> bool:
    if not sys.stdin.isatty():
        return False
    print_text(f"This deletes a whole conversation: {count(len(family), 'session')}.")
    for each in family:
        about = f" {each['title']}" if each.get("title") else ""
        print_text("  " + one_line(f"{each['id']} ({each['phase']}, {count(each['messages'], 'message')}){about}"))
    return confirms("This cannot be undone. Delete it?")
