"""`hermes chat`: a conversation on the terminal, or one question in a script.

It speaks to the running daemon over the admin socket, or to one it starts inside itself when there is none.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from hermes.cli.output import one_line, print_json, printable
from hermes.cli.parser import session_id
from hermes.errors import HermesError, NotRunningError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from hermes.cli.client import AdminClient
    from hermes.cli.conversation import Conversation
    from hermes.cli.parser import Commands

_LEAVE = ("/quit", "/exit", "/q")
_HELP = """\
/help               this list
/quit, /exit, /q    leave, like Ctrl-D, or Ctrl-C at the prompt; the session stays
Ctrl-C              stops an answer
Anything else is a message."""
_LOOK_BACK = 4  # messages


def add_commands(commands: Commands) -> None:
    parser = commands.add(
        "chat",
        _run,
        "Talk to Hermes on the terminal. Ctrl-C stops an answer; /quit, Ctrl-D or Ctrl-C at the prompt leaves.",
        examples=(
            "  hermes chat\n"
            "  hermes chat -r 20260102_030405_1a2b3c4d\n"
            "  hermes chat -z 'What is the capital of Peru?'\n"
            "  git diff | hermes chat -z 'Write a commit message for this'\n"
            "  hermes chat -z - --json < question.txt"
        ),
        json=True,
    )
    parser.add_argument("-r", "--resume", type=session_id, metavar="SESSION", help="go on with this session")
    parser.add_argument(
        "-z",
        "--oneshot",
        metavar="QUESTION",
        help="print only the answer to this question, together with what is piped in; - takes it all from the pipe",
    )


def _run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    if args.json and args.oneshot is None:
        args.usage_error("--json goes with -z")
    question = None if args.oneshot is None else _question(args.oneshot)
    with _daemon(environ) as client:
        conversation, greeting = _conversation(client, args.resume)
        if question is not None:
            return _answer_one(conversation, question, as_json=args.json)
        print(greeting, "/quit leaves.")
        return _converse(conversation, resumed=args.resume is not None)


@contextmanager
def _daemon(environ: Mapping[str, str]) -> Iterator[AdminClient]:
    from hermes.cli.client import AdminClient
    from hermes.home import Home

    home = Home.from_environ(environ)
    client = AdminClient(home.socket)
    try:
        client.get("/info")
    except NotRunningError:
        from hermes.cli.embedded import daemon_inside

        with daemon_inside(home, environ):
            yield client
    else:
        yield client


def _conversation(client: AdminClient, resumed: str | None) -> tuple[Conversation, str]:
    """With the live end of a session's line, or under an id of our own that nobody has used yet; and how it opens."""
    from hermes.cli.conversation import Conversation, describe

    if resumed is not None:
        from hermes.cli.client import session_path

        view = client.get(session_path(resumed), tail=_LOOK_BACK)
        return Conversation(client, view["session"]["id"]), "\n".join(describe(view, resumed))
    import secrets
    import time

    session = f"{time.strftime('%Y%m%d_%H%M%S', time.gmtime())}_{secrets.token_hex(4)}"
    return Conversation(client, session), f"Session {session}."


# ---------------------------------------------------------------- one question


def _question(given: str) -> str:
    text = _piped() if given == "-" else "\n\n".join(filter(None, [given, _piped() if _is_piped() else ""]))
    text = text.encode("utf-8", "replace").decode()  # an argument can hold bytes that are not text
    if not text.strip():
        raise HermesError("the question is empty")
    return text


def _piped() -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace").strip("\n")


def _is_piped() -> bool:
    """Only pipes and files: reading anything else (a terminal, a service's idle socket) would wait for ever."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):  # closed, or not a real file
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def _answer_one(conversation: Conversation, question: str, *, as_json: bool) -> int:
    try:
        text = "".join(conversation.ask(question))
    except KeyboardInterrupt:
        conversation.stop()
        raise
    if as_json:
        print_json({"session_id": conversation.session, "text": text, **conversation.last})
    else:
        if notice := conversation.last["notice"]:
            print(f"hermes: {one_line(notice)}", file=sys.stderr)
        print(printable(text) if sys.stdout.isatty() else text)
    return 0


# ---------------------------------------------------------------- a conversation


def _converse(conversation: Conversation, *, resumed: bool) -> int:
    failed, said = False, resumed
    interactive = sys.stdin.isatty()
    for line in _lines(interactive=interactive):
        text = line.strip()
        command = text.partition(" ")[0].lower()
        if command in _LEAVE:
            break
        if command == "/help":
            print(_HELP)
        elif re.match(r"/[a-z-]+(\s|$)", text):
            print(f"There is no {command}; /help lists what there is.")
        elif text:
            said = True
            failed |= not _answer(conversation, text)
    if said:
        print(f"Go on with: hermes chat -r {conversation.session}")
    return 1 if failed and not interactive else 0


def _lines(*, interactive: bool) -> Iterator[str]:
    if not interactive:
        yield from sys.stdin
        return
    with suppress(ImportError):
        import readline  # noqa: F401 - gives `input` its line editing
    while True:
        try:
            line = input("you> ")
        except (EOFError, KeyboardInterrupt):
            print()
            return
        yield line


def _answer(conversation: Conversation, text: str) -> bool:
    try:
        for piece in conversation.ask(text):
            print(printable(piece), end="", flush=True)
    except KeyboardInterrupt:
        conversation.stop()
        print("\n(stopped)")
    except NotRunningError:  # nobody is left to talk to
        print()
        raise
    except HermesError as error:
        print(f"\nhermes: {error}", file=sys.stderr)
        return False
    else:
        notice = conversation.last["notice"]
        print(f"\n({one_line(notice)})" if notice else "")
    return True
