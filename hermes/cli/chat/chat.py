"""`hermes chat`: a conversation on the terminal, or one question in a script.

It speaks to the running daemon over the admin socket, or to one it starts inside itself when there is none.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from hermes.cli.output import one_line, print_json, print_text, printable
from hermes.cli.parser import add_session, seconds
from hermes.domain.errors import HermesError, NotRunningError
from hermes.domain.values import dataclass

if TYPE_CHECKING:
    import argparse
    from collections.abc import Generator, Iterator, Mapping

    from hermes.cli.chat.conversation import CommandResult, Conversation
    from hermes.cli.chat.fact import Fact
    from hermes.cli.client import AdminClient
    from hermes.cli.parser import Commands

_LOOK_BACK = 4  # messages


class TimedOutError(HermesError):
    exit_code = 124  # as of timeout(1)


def add_commands(commands: Commands) -> None:
    parser = commands.add(
        "chat",
        _run,
        "Talk to Hermes on the terminal. Ctrl-C stops an answer; /quit, Ctrl-D or Ctrl-C at the empty prompt leaves.",
        examples=(
            "  hermes chat\n"
            "  hermes chat -r -                        go on with the last session\n"
            "  hermes chat -z 'What is the capital of Peru?'\n"
            "  git diff | hermes chat -z 'Write a commit message for this'\n"
            "  hermes chat -z - --json < question.txt\n\n"
            "Commands run in the directory where a new conversation is started, if you trust it: you are asked the\n"
            "first time, or --trust says so. Without a terminal, and in your home directory, nobody is asked, and\n"
            "commands run where terminal.cwd says.\n\n"
            "A single question (-z) that needs a permission or an answer ends with exit code 3 and says on stderr\n"
            "how to give it; one that takes longer than --timeout is stopped and ends with 124, as by Ctrl-C with\n"
            "130. What was asked is stored: stderr says how to see its answer."
        ),
        json=True,
    )
    add_session(parser, "-r", "--resume", help="go on with this session; - is the last one")
    parser.add_argument(
        "-z",
        "--oneshot",
        metavar="QUESTION",
        help="print only the answer to this question, together with what is piped in; - takes it all from the pipe",
    )
    parser.add_argument("--timeout", type=seconds, metavar="S", help="stop a single question after so many seconds")
    parser.add_argument(
        "--trust", action="store_true", help="let the agent work in this directory, now and from now on"
    )
    parser.add_argument(
        "--yolo", action="store_true", help="permit everything that is asked for, as long as this chat runs"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonConnection:
    client: AdminClient
    model: str
    inside: bool  # this process: it ends with the chat


def _run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    for option, given in (("--json", args.json), ("--timeout", args.timeout is not None)):
        if given and args.oneshot is None:
            args.usage_error(f"{option} goes with -z")
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
    from hermes.cli.client import AdminClient
    from hermes.config.home import Home

    home = Home.from_environ(environ)
    client = AdminClient(home.socket)
    try:
        info = client.info()
    except NotRunningError:
        from hermes.cli.chat.embedded import daemon_inside

        with daemon_inside(home, environ):
            yield DaemonConnection(client=client, model=_model(client.get("/info")), inside=True)
    else:
        yield DaemonConnection(client=client, model=_model(info), inside=False)


def _model(info: Mapping[str, object]) -> str:
    return one_line(str(info.get("model") or "of an unknown name"))


def _opening(daemon: DaemonConnection, greeting: str) -> str:
    if daemon.inside:
        alone = f"No daemon runs, so this chat has one inside: model {daemon.model}, and its work ends with the chat."
        return f"{alone}\n{greeting} /quit leaves."
    return f"{greeting} The model is {daemon.model}; /quit leaves."


def _workdir(args: argparse.Namespace, environ: Mapping[str, str], *, asks: bool) -> str | None:
    from hermes.cli.chat.workdir import chosen_workdir
    from hermes.config.home import Home

    return chosen_workdir(Home.from_environ(environ), trust=args.trust, asks=asks)


def _conversation(client: AdminClient, resumed: str | None, workdir: str | None) -> tuple[Conversation, str]:
    """With the live end of a session's line, or under an id of our own that nobody has used yet; and how it opens."""
    from hermes.cli.chat.conversation import Conversation
    from hermes.cli.chat.opening import describe

    if resumed is not None:
        from hermes.cli.client import session_path
        from hermes.cli.session_lookup import resolve_session

        session = resolve_session(client, resumed)
        view = client.get(session_path(session), tail=_LOOK_BACK)
        return Conversation(client, view["session"]["id"]), "\n".join(describe(view, session))
    import secrets

    session = f"{time.strftime('%Y%m%d_%H%M%S', time.gmtime())}_{secrets.token_hex(4)}"
    where = f" It works in {one_line(workdir)}." if workdir else ""
    return Conversation(client, session, workdir), f"Session {session}.{where}"


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


def _answer_one(
    conversation: Conversation, client: AdminClient, question: str, args: argparse.Namespace, *, inside: bool
) -> int:
    from hermes.cli.chat.conversation import TurnFailedError, is_command

    if is_command(question) and "\n" not in question.strip():
        reply = conversation.command(question.strip())
        if reply.turn is None:
            return _tell(conversation, reply, args)
        facts = conversation.watch(reply.turn)
    else:
        facts = conversation.ask(question)
    if not inside:
        from hermes.cli.next_boot import across_restarts

        facts = across_restarts(conversation, client, facts)
    try:
        text = _only_answer(conversation, facts, args, inside=inside)
    except KeyboardInterrupt:
        _aside(_ended(conversation, "stopped by Ctrl-C"))
        raise
    except TimedOutError as error:
        raise TimedOutError(f"{error}; {_ended(conversation, f'it took longer than {args.timeout:g} s')}") from None
    except TurnFailedError as error:
        if conversation.turn is None:
            raise
        raise HermesError(f"{error} (try it again with: hermes chat -r {conversation.session} -z /retry)") from error
    last = conversation.last
    if args.json:
        print_json({"session_id": conversation.session, "text": text, **last})
        return 0
    if last["notice"]:
        _aside(last["notice"])
    if last["finish_reason"] == "length":
        _aside("the answer was cut off: the model may not write more at once")
    print(printable(text) if sys.stdout.isatty() else text)
    return 0


def _tell(conversation: Conversation, reply: CommandResult, args: argparse.Namespace) -> int:
    """What a command said that began no turn."""
    if args.json:
        print_json({"session_id": conversation.session, "text": reply.text, "ok": reply.ok})
    elif reply.ok:
        print_text(printable(reply.text))
    else:
        print_text(f"hermes: {printable(reply.text)}", file=sys.stderr)
    return 0 if reply.ok else 1


def _only_answer(
    conversation: Conversation, answer: Generator[Fact], args: argparse.Namespace, *, inside: bool
) -> str:
    """What was said after the last tool call: everything before it was on the way to the answer."""
    from hermes.cli.chat.fact import NoticeShown, QuestionShown, Text, TextDiscarded, ToolCallBegan
    from hermes.cli.chat.turn_question import WaitingError, details

    texts: list[str] = []
    deadline = None if args.timeout is None else time.monotonic() + args.timeout
    with closing(answer) as facts:
        for fact in facts:
            match fact:
                case Text(text=text):
                    texts.append(text)
                case ToolCallBegan() | TextDiscarded():
                    texts.clear()
                case NoticeShown(text=text):
                    _aside(text)
                case QuestionShown(approval=True) if args.yolo:
                    conversation.answer(fact, "once")
                    _aside(f"allowed by --yolo: {' '.join(details(fact))}")
                case QuestionShown():
                    raise WaitingError(conversation.session, fact, inside=inside)
                case _:
                    pass
            if deadline is not None and time.monotonic() > deadline:
                raise TimedOutError(f"there was no answer within {args.timeout:g} s")
    return "".join(texts)


def _ended(conversation: Conversation, reason: str) -> str:
    """What became of the turn that nobody waits for any longer."""
    from hermes.cli.chat.conversation import kept

    session = conversation.session
    try:
        conversation.stop(reason)
    except NotRunningError:
        return f"no daemon runs that could stop the turn. {kept(session)}"
    if conversation.turn is None:
        return f"the question was not confirmed and may not be stored (hermes show {session})"
    return f"the turn was stopped, the question is stored (hermes show {session})"


def _aside(text: str) -> None:
    print_text(f"hermes: {one_line(text)}", file=sys.stderr)
