"""`hermes approve`, `deny` and `answer`: answer what a session waits for, from any terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.answered import asks_session, path_of
from hermes.cli.output import one_line, print_text, printable
from hermes.cli.parser import add_session
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from hermes.cli.answered import Answer
    from hermes.cli.client import AdminClient
    from hermes.cli.parser import Commands, Run

_SESSION = "20260102_030405_1a2b3c4d"
_ALLOWED = {
    "once": "Allowed once in {id}",
    "session": "Allowed in {id} until the session ends",
    "always": "Allowed permanently in all sessions, requested by {id}",
}


_SHOW = "show"


def add_commands(commands: Commands) -> None:
    approve = commands.add(
        "approve",
        _approve,
        "Approve the tool call that a session waits for.",
        examples=f"  hermes approve {_SESSION}\n  hermes approve - session",
        json=True,
    )
    add_session(approve)
    approve.add_argument(
        "span",
        nargs="?",
        choices=(*_ALLOWED, _SHOW),
        default="once",
        help="how long the approval holds (default: once); show prints the whole command",
    )
    deny = commands.add(
        "deny",
        _send(lambda _: "deny", lambda _: "Denied in {id}", permits=True),
        "Deny the tool call that a session waits for. The turn continues without it.",
        examples=f"  hermes deny {_SESSION}",
        json=True,
    )
    add_session(deny)
    answer = commands.add(
        "answer",
        _send(lambda args: " ".join(args.text), lambda _: "Answered in {id}"),
        "Answer the question of a session that waits.",
        examples=f"  hermes answer {_SESSION} the second one\n  hermes answer - yes",
        json=True,
    )
    add_session(answer)
    answer.add_argument("text", nargs="+", metavar="TEXT", help="the answer")


def _approve(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    if args.span == _SHOW:
        return _show(args, environ)
    return _send(lambda args: args.span, lambda args: _ALLOWED[args.span], permits=True)(args, environ)


@asks_session
def _show(_args: argparse.Namespace, client: AdminClient, session: str) -> Answer:
    """Print the whole call that needs approval. A shortened question can be answered after this."""
    from hermes.cli.client import send

    pending = client.get(path_of("api", "sessions", session)).get("pending")
    if pending is None or pending["kind"] == "question":
        raise HermesError(f"session {session} does not wait for an approval")
    if _SHOW in pending["choices"]:
        send(client, session, "answer", {"answer": _SHOW, "call_id": pending["call_id"]})
    return pending, lambda: print_text(printable(pending["question"]))


def _send(
    answer_of: Callable[[argparse.Namespace], str],
    said_of: Callable[[argparse.Namespace], str],
    *,
    permits: bool = False,
) -> Run:
    """Return a command that sends an answer. `permits`: it answers an approval, not a question."""

    @asks_session
    def run(args: argparse.Namespace, client: AdminClient, session: str) -> Answer:
        from hermes.cli.client import send

        call = _permission(client, session) if permits else {}
        reply = send(client, session, "answer", {"answer": answer_of(args), **call})
        done = said_of(args).format(id=session)
        return reply, f"{done}. The turn continues; `hermes show {session}` shows its answer."

    return run


def _permission(client: AdminClient, session: str) -> dict[str, str]:
    """Return the id of the call that needs approval, so that no other one is answered. Raises for a question."""
    from hermes.cli.client import AdminError

    try:
        pending = client.get(path_of("api", "sessions", session)).get("pending")
    except AdminError:  # sending the answer reports it
        return {}
    if pending is None:
        return {}
    if pending["kind"] == "question":
        choices = f" ({', '.join(pending['choices'])})" if pending["choices"] else ""
        raise HermesError(
            one_line(f"this is a question, not an approval: use `hermes answer {session} TEXT`{choices}")
        )
    return {"call_id": pending["call_id"]}
