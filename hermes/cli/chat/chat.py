"""`hermes chat`: a conversation on the terminal, or one question in a script.

It talks to the running daemon over the admin socket. If none runs, it starts one in a child process.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.output import one_line, print_json, print_text, printable
from hermes.cli.parser import add_session, seconds
from hermes.domain.errors import HermesError, NotRunningError
from hermes.domain.values import dataclass

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from hermes.cli.chat.conversation import CommandResult, Conversation
    from hermes.cli.client import AdminClient
    from hermes.cli.parser import Commands

_LAST_MESSAGES = 4  # shown when a session is resumed


class TimedOutError(HermesError):
    exit_code = 124  # as timeout(1)


def add_commands(commands: Commands) -> None:
    parser = commands.add(
        "chat",
        _run,
        "Talk to Hermes on the terminal. Ctrl-C stops an answer; /quit, Ctrl-D or Ctrl-C at an empty prompt exits.",
        examples=(
            "  hermes chat\n"
            "  hermes chat -r -                        continue the last session\n"
            "  hermes chat -r 'Trip to Lima'           continue the session with this title\n"
            "  hermes chat -z 'What is the capital of Peru?'\n"
            "  git diff | hermes chat -z 'Write a commit message for this'\n"
            "  hermes chat -z - --json < question.txt\n\n"
            "Tools run in the directory where a new conversation is started, if you trust it. You are asked "
            "once, or\n"
            "pass --trust. Without a terminal, and in your home directory, tools run in terminal.cwd instead.\n\n"
            "Exit codes of a single question (-z): 3 if it needs an approval or an answer, 124 if --timeout stopped\n"
            "it, 130 if Ctrl-C stopped it. The question is stored in each case; stderr tells how to continue."
        ),
        json=True,
    )
    add_session(
        parser,
        *("-r", "--resume", "-c", "--continue"),
        nargs="?",
        help="continue this session, by id, title or the beginning of one; alone or with -, the last active one",
    )
    parser.add_argument(
        "-z",
        "--oneshot",
        nargs="?",
        const="-",
        metavar="QUESTION",
        help="ask one question and print only the answer; piped input is appended; alone or with -, stdin has it",
    )
    parser.add_argument(
        "--image", action="append", default=[], metavar="FILE", help="send a picture with the question; repeatable"
    )
    parser.add_argument("--timeout", type=seconds, metavar="S", help="stop a single question after S seconds")
    parser.add_argument(
        "--trust", action="store_true", help="trust this directory: let the agent work in it, now and later"
    )
    parser.add_argument(
        "--plain", action="store_true", help="plain lines instead of the terminal interface, as for screen readers"
    )
    parser.add_argument("--yolo", action="store_true", help="auto-approve all tool calls in this chat")


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonConnection:
    client: AdminClient
    model: str
    inside: bool  # it ends with the chat


def _run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    for option, given in (
        ("--json", args.json),
        ("--image", args.image),
        ("--timeout", args.timeout is not None),
    ):
        if given and args.oneshot is None:
            args.usage_error(f"{option} needs -z")
    if args.oneshot is None and not args.plain:
        from hermes.cli.chat import interface

        if interface.is_possible(environ):
            return interface.run_interface(args, environ)
    question = None if args.oneshot is None else _question(args.oneshot)
    with _daemon(environ) as daemon:
        workdir = None if args.resume is not None else _workdir(args, environ, asks=question is None)
        conversation, greeting = _conversation(daemon.client, args.resume, workdir)
        if question is not None:
            return _answer_one(conversation, daemon.client, question, args, inside=daemon.inside)
        from hermes.cli.chat.dialogue import Dialogue

        print_text(_opening(daemon, greeting))
        resumed = args.resume is not None
        return Dialogue(conversation, daemon.client, yolo=args.yolo, inside=daemon.inside, resumed=resumed).run()


@contextmanager
def _daemon(environ: Mapping[str, str]) -> Iterator[DaemonConnection]:
    from hermes.cli.chat.interface import own_daemon
    from hermes.cli.client import AdminClient
    from hermes.config.home import Home

    home = Home.from_environ(environ)
    client = AdminClient(home.socket)
    with own_daemon(home, environ, shows_log=True) as child:
        if child is not None:
            child.await_ready()
        yield DaemonConnection(client=client, model=_model(client.info()), inside=child is not None)


def _model(info: Mapping[str, object]) -> str:
    return one_line(str(info.get("model") or "unknown"))


def _opening(daemon: DaemonConnection, greeting: str) -> str:
    if daemon.inside:
        alone = (
            f"No daemon runs: this chat starts its own, with model {daemon.model}. Its work stops when the chat ends."
        )
        return f"{alone}\n{greeting} /quit exits."
    return f"{greeting} Model: {daemon.model}. /quit exits."


def _workdir(args: argparse.Namespace, environ: Mapping[str, str], *, asks: bool) -> str | None:
    from hermes.cli.chat.workdir import chosen_workdir
    from hermes.config.home import Home

    return chosen_workdir(Home.from_environ(environ), trust=args.trust, asks=asks)


def _conversation(client: AdminClient, resumed: str | None, workdir: str | None) -> tuple[Conversation, str]:
    """Return a conversation, resumed or under a new session id, and its greeting."""
    from hermes.cli.chat.conversation import Conversation
    from hermes.cli.chat.opening import describe

    if resumed is not None:
        from hermes.cli.client import session_path
        from hermes.cli.session_lookup import resolve_resumed

        session = resolve_resumed(client, resumed)
        view = client.get(session_path(session), tail=_LAST_MESSAGES)
        return Conversation(client, view["session"]["id"]), "\n".join(describe(view, session))
    from hermes.system.random_id import new_session_id

    session = new_session_id(time.time())
    where = f" Working directory: {one_line(workdir)}." if workdir else ""
    return Conversation(client, session, workdir), f"Session {session}.{where}"


# ---------------------------------------------------------------- one question


def _question(given: str) -> str:
    text = _piped() if given == "-" else "\n\n".join(filter(None, [given, _piped() if _is_piped() else ""]))
    text = text.encode("utf-8", "replace").decode()  # an argument can hold bytes that are not UTF-8
    if not text.strip():
        raise HermesError("the question is empty")
    return text


def _piped() -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace").strip("\n")


def _is_piped() -> bool:
    """Return whether stdin is a pipe or a file. Reading a terminal or an idle socket would block forever."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):  # closed, or not a real file
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def _answer_one(
    conversation: Conversation, client: AdminClient, question: str, args: argparse.Namespace, *, inside: bool
) -> int:
    from hermes.cli.chat.conversation import TurnFailedError, is_command

    turn = ""
    if is_command(question) and "\n" not in question.strip():
        reply = conversation.command(question.strip())
        if not (turn := reply.turn):
            return _print_reply(conversation, reply, args)
    try:
        _follow(conversation, client, (question, turn), args, inside=inside)
    except KeyboardInterrupt:
        _print_notice(_stop_turn(conversation, "stopped by Ctrl-C"))
        raise
    except TimedOutError as error:
        raise TimedOutError(
            f"{error}; {_stop_turn(conversation, f'it took longer than {args.timeout:g} s')}"
        ) from None
    except TurnFailedError as error:
        raise HermesError(f"{error} (to try again: hermes chat -r {conversation.session} -z /retry)") from error
    text, notice = str(conversation.end.get("output") or ""), conversation.notice or None
    if args.json:
        told = {name: conversation.end.get(name) for name in ("model", "finish_reason", "usage")}
        print_json({"session_id": conversation.session, "text": text, **told, "notice": notice})
        return 0
    if notice:
        _print_notice(notice)
    if not _streams(args):
        print(text)
    return 0


def _streams(args: argparse.Namespace) -> bool:
    """Return whether the answer is printed as it is written: on a terminal."""
    return sys.stdout.isatty() and not args.json


def _print_reply(conversation: Conversation, reply: CommandResult, args: argparse.Namespace) -> int:
    """Print the reply to a command that started no turn."""
    if args.json:
        print_json({"session_id": conversation.session, "text": reply.text, "ok": reply.ok})
    elif reply.ok:
        print_text(printable(reply.text))
    else:
        print_text(f"hermes: {printable(reply.text)}", file=sys.stderr)
    return 0 if reply.ok else 1


def _follow(
    conversation: Conversation, client: AdminClient, asked: tuple[str, str], args: argparse.Namespace, *, inside: bool
) -> None:
    """Follow the turn of a question, or of the command that started it. On a terminal, print it as it is written."""
    import secrets
    from functools import partial

    from hermes.cli.chat.turn_question import WaitingError, details
    from hermes.cli.chat.view import AnswerView
    from hermes.cli.next_boot import across_restarts
    from hermes.tui.chat.picture_files import input_of

    question, turn = asked
    key = secrets.token_hex(16)
    asked_with = input_of(question, tuple(map(Path, args.image)))
    begin = partial(conversation.watch, turn) if turn else partial(conversation.ask, asked_with, key)
    lines, allowed = AnswerView(streams=_streams(args)), None
    deadline = None if args.timeout is None else time.monotonic() + args.timeout
    conversation.begin()
    with closing(begin() if inside else across_restarts(conversation, client, begin)) as steps:
        for _ in steps:
            lines.show(conversation.view)
            prompt = conversation.view.prompt
            if prompt is not None and prompt != allowed:
                if not (args.yolo and prompt.approval):
                    lines.finish()
                    raise WaitingError(conversation.session, prompt, inside=inside)
                conversation.answer(prompt, "once")
                lines.notice(f"allowed by --yolo: {' '.join(details(prompt))}")
                allowed = prompt
            if deadline is not None and time.monotonic() > deadline:
                raise TimedOutError(f"no answer within {args.timeout:g} s")
    lines.finish()


def _stop_turn(conversation: Conversation, reason: str) -> str:
    """Stop the turn, and return what is stored of it."""
    session = conversation.session
    try:
        conversation.stop(reason)
    except NotRunningError:
        return f"no daemon runs to stop the turn. {conversation.kept()}"
    if not conversation.turn:
        return f"the daemon did not confirm the question: it may not be stored (see: hermes show {session})"
    return f"the turn was stopped; the question is stored (see: hermes show {session})"


def _print_notice(text: str) -> None:
    print_text(f"hermes: {one_line(text)}", file=sys.stderr)
