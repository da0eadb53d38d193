"""Interactive loop of `hermes chat`: prompt, answers, slash commands, and questions of a turn.

Lines typed while an answer runs, messages and commands, go to the daemon immediately.
"""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING

from hermes.cli.chat.conversation import StoppedError, SubmittedTurn, TurnFailedError, is_command
from hermes.cli.chat.fact import NoticeShown, QuestionShown, SteeringTaken, TextDiscarded
from hermes.cli.chat.keyboard import (
    ClearedError,
    drop_typed,
    echoing,
    prepare_keyboard,
    read_answer,
    read_message,
    typed_lines,
)
from hermes.cli.chat.news import News
from hermes.cli.chat.turn_question import (
    WaitingError,
    confirmations,
    details,
    expected,
    headline,
    parse_answer,
    prompt,
)
from hermes.cli.chat.typed_ahead import Begun, TypedAhead
from hermes.cli.chat.view import make_view
from hermes.cli.client import AdminError, LostError
from hermes.cli.command_list import print_commands
from hermes.cli.next_boot import AWAY_S, current_boot, until_back
from hermes.cli.output import print_text, printable
from hermes.domain.errors import HermesError, NotRunningError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from hermes.cli.chat.conversation import CommandResult, Conversation
    from hermes.cli.chat.fact import Fact
    from hermes.cli.chat.typed_ahead import Later
    from hermes.cli.chat.view import ChatView
    from hermes.cli.client import AdminClient

_LEAVE = ("/quit", "/exit", "/q")
_HELP = """\
/help               this list
/quit, /exit, /q    exit, like Ctrl-D; the session is kept
Ctrl-C              stop an answer; at the prompt: clear the line, or exit if it is empty
Alt-Enter           start a new line in the same message
Other lines that start with a slash and a word are commands for the daemon, also while an answer runs.
Anything else is a message; lines pasted together are one message. A message typed while an answer runs is queued,
steers the running turn or interrupts it: see /busy."""


class _LeftError(Exception):
    """The person exited in the middle of a turn."""


class Dialogue:
    def __init__(
        self, conversation: Conversation, client: AdminClient, *, yolo: bool, inside: bool, resumed: bool
    ) -> None:
        self._conversation = conversation
        self._client = client
        self._yolo = yolo
        self._inside = inside
        self._interactive = sys.stdin.isatty()
        self._ahead = TypedAhead(conversation)
        self._leaving = False  # exit after the running turn
        self._asking = False  # a question is open on the terminal
        self._news = News(conversation, client, resumed=resumed)
        self._resumed = resumed
        self._question: dict[str, str] = {}  # command for a typed yes or no, after a command that asks back

    def run(self) -> int:
        opened, failed, said = self._conversation.session, False, self._resumed
        try:
            if self._resumed:
                self._resume_question()
            for message in self._messages():
                done = self._handle(message)
                failed |= not done
                said |= isinstance(message, str) and bool(message.strip()) and not message.lstrip().startswith("/")
        except _LeftError:
            said = True
        finally:
            for line in self._ahead.close():
                print_text(f"(not sent: {printable(line)})")
        if said or self._conversation.session != opened:
            print(f"Continue with: hermes chat -r {self._conversation.session}")
        return 1 if failed and not self._interactive else 0

    def _messages(self) -> Iterator[Later]:
        if not self._interactive:
            yield from _until_left(sys.stdin)
            return
        prepare_keyboard()
        while True:
            if self._ahead:
                later = self._ahead.take()
                if isinstance(later, str):
                    print_text(f"you> {printable(later)}")
                yield later
                continue
            if self._leaving:
                return
            try:
                message = read_message("you> ", self._news.poll)
            except (EOFError, KeyboardInterrupt):
                print()
                return
            except ClearedError:
                print()
                continue
            if _leaves(message):
                return
            yield message

    def _handle(self, message: Later) -> bool:
        if not isinstance(message, str):
            return self._take_later(message)
        return self._take(message.strip())

    def _take(self, text: str) -> bool:
        question, self._question = self._question, {}
        text = question.get(text.lower(), text)
        if text.lower() == "/help":
            self._help()
        elif is_command(text):
            return self._command(text)
        elif text:
            return self._turn(lambda: self._conversation.ask(text))
        return True

    def _take_later(self, message: SubmittedTurn | Begun) -> bool:
        if isinstance(message, Begun) and message.merges and not self._conversation.is_open(message.turn):
            return True
        if message.text:
            print_text(f"you> {printable(message.text)}")
        if isinstance(message, SubmittedTurn):
            return self._turn(lambda: self._conversation.answer_to(message))
        return self._turn(lambda: self._conversation.watch(message.turn))

    def _resume_question(self) -> None:
        """Show the open question of a resumed session. Without a terminal the next line may be the answer."""
        turn = self._conversation.asking_turn() if self._interactive else None
        if turn is not None:
            self._turn(lambda: self._conversation.watch(turn))

    # ------------------------------------------------------------ commands

    def _help(self) -> None:
        print(_HELP)
        try:
            listed = self._client.get("/api/commands")["commands"]
        except (HermesError, KeyError):  # an older daemon
            return
        print_commands(listed)

    def _command(self, text: str) -> bool:
        restarts = text.partition(" ")[0].lower() == "/restart"
        before = current_boot(self._client) if restarts else None
        reply = self._reply_to(text)
        if restarts and reply is not None and reply.ok:
            self._await_boot(before, make_view())
        if reply is None or reply.turn is None:
            return reply is not None and reply.ok
        turn = reply.turn
        return self._turn(lambda: self._conversation.watch(turn))

    def _reply_to(self, text: str) -> CommandResult | None:
        try:
            reply = self._conversation.command(text)
        except HermesError as error:
            if isinstance(error, NotRunningError) and not self._interactive:
                raise
            print_text(f"hermes: {error}", file=sys.stderr)
            return None
        if reply.text:
            print_text(printable(reply.text))
        self._question = confirmations(text, reply.choices)
        return reply

    # ------------------------------------------------------------ a turn

    def _turn(self, begin: Callable[[], Generator[Fact]]) -> bool:
        view = make_view()
        try:
            with echoing(on=False):
                self._follow(begin, view)
                self._listen(view)
        except KeyboardInterrupt:
            view.finish()
            self._conversation.stop()
            print("(stopped)")
        except (NotRunningError, WaitingError, _LeftError):  # the daemon or the person is gone
            view.finish()
            raise
        except StoppedError as error:
            view.finish()
            print_text(f"({error})")
            return False
        except HermesError as error:
            view.finish()
            print_text(f"hermes: {error}", file=sys.stderr)
            if isinstance(error, TurnFailedError) and not error.suggests_retry:
                print_text("(/retry tries again)")
            return False
        else:
            for notice in self._closing_notices():
                view.show(NoticeShown(text=notice))
            view.finish()
        return True

    def _follow(self, begin: Callable[[], Generator[Fact]], view: ChatView) -> None:
        """Show a turn to its end, also across a restart of the daemon."""
        self._asking = False
        try:
            with closing(begin()) as facts:
                for fact in facts:
                    self._show(fact, view)
                    self._listen(view)
        except NotRunningError as error:
            if not self._interactive or self._inside:
                raise
            view.finish()
            self._await_daemon(error, view)
            self._ahead.close_streams()
            turn = self._conversation.turn
            if turn is None and isinstance(error, LostError):
                return  # the message may not be stored, as the error says
            if turn is not None:
                self._ahead.send_unsent()
                view.show(TextDiscarded())
            self._follow(begin if turn is None else lambda: self._conversation.watch(turn), view)

    def _show(self, fact: Fact, view: ChatView) -> None:
        match fact:
            case QuestionShown():
                self._asked(fact, view)
            case SteeringTaken():
                if text := self._ahead.merged(fact.turn):
                    view.show(NoticeShown(text=f"added to this turn: {text}"))
            case _:
                view.show(fact)

    def _await_daemon(self, error: NotRunningError, view: ChatView) -> None:
        print_text(f"hermes: {error}", file=sys.stderr)
        meanwhile = "" if self._asking else "messages you type are kept, "
        what = self._kept(error)
        try:
            print_text(f"(waiting up to {AWAY_S:.0f} s for a daemon; {meanwhile}Ctrl-C exits)")
            self._await_boot(None, view)
        except (_LeftError, KeyboardInterrupt):  # Ctrl-C before the wait started
            print_text(f"({what})")
            raise _LeftError from None
        except NotRunningError as none:
            where = f"continue with: hermes chat -r {self._conversation.session}"
            raise NotRunningError(f"{none}. {what}; {where}") from none

    def _kept(self, error: NotRunningError) -> str:
        if self._asking:
            return "The question is stored and waits for your answer"
        if self._conversation.turn is not None:
            return "The message is stored and the turn resumes when a daemon runs again"
        return "The message may not be stored" if isinstance(error, LostError) else "The message was not sent"

    def _await_boot(self, before: int | None, view: ChatView) -> None:
        """Wait for a daemon. Typed lines are read meanwhile, so that the shell does not get them."""
        try:
            with echoing(on=False):
                for _ in until_back(self._client, after=before):
                    self._listen(view, self._refuse_answer if self._asking else None)
                    if self._leaving:
                        raise _LeftError
        except KeyboardInterrupt:
            drop_typed()
            raise _LeftError from None
        except NotRunningError:
            drop_typed()
            raise
        print_text("(the daemon is back)")

    def _refuse_answer(self, _line: str) -> None:
        print_text("(not sent: the question is asked again when a daemon is back)")

    def _closing_notices(self) -> Iterator[str]:
        if self._conversation.last["finish_reason"] == "length":
            yield "cut off at the output limit of the model"
        if notice := self._conversation.last["notice"]:
            yield notice

    # ------------------------------------------------------------ input while a turn runs

    def _listen(self, view: ChatView, take: Callable[[str], None] | None = None) -> None:
        """Handle the lines typed so far. `take` gets the messages (default: submit them)."""
        if not self._interactive or self._leaving:
            return
        try:
            for line in typed_lines():
                if line:
                    view.make_way()
                    self._handle_typed(line, take or self._ahead.send)
        except EOFError:
            self._leaving = True

    def _handle_typed(self, line: str, take: Callable[[str], None]) -> None:
        if _leaves(line):
            raise _LeftError
        if is_command(line):
            print_text(f"you> {printable(line)}")
            self._run_command(line)
        else:
            take(line)

    def _run_command(self, command: str) -> None:
        """Run a command while a turn runs."""
        if command.lower() == "/help":
            self._help()
            return
        reply = self._reply_to(command)
        if reply is not None and reply.turn not in (None, self._conversation.turn):
            self._ahead.add(Begun(turn=str(reply.turn), merges=command.lower().startswith("/steer")))

    # ------------------------------------------------------------ questions

    def _asked(self, asked: QuestionShown, view: ChatView) -> None:
        view.show(asked)
        view.pause()
        if asked.approval and self._yolo:
            self._conversation.answer(asked, "once")
            view.show(NoticeShown(text=f"allowed by --yolo: {' '.join(details(asked))}"))
            return
        self._listen(view, self._ahead.keep)  # lines typed before the question are not the answer
        if not self._interactive or self._leaving:
            raise WaitingError(self._conversation.session, asked, inside=self._inside)
        print_text("\n  ".join([headline(asked), *details(asked)]))
        self._asking = True
        try:
            self._settle(asked, view)
        except EOFError:
            raise WaitingError(self._conversation.session, asked, inside=self._inside) from None
        self._asking = False

    def _settle(self, asked: QuestionShown, view: ChatView) -> None:
        def settled() -> bool:
            return self._conversation.is_settled(asked)

        while (line := read_answer(prompt(asked), settled)) is not None:
            if self._answers(asked, line):
                break
        else:
            view.show(NoticeShown(text="answered elsewhere"))
        self._ahead.send_kept()

    def _answers(self, asked: QuestionShown, line: str) -> bool:
        """Handle a line typed at a question. Return whether the question is settled."""
        if _leaves(line):
            raise EOFError
        if is_command(line):
            self._run_command(line)
            return self._conversation.is_settled(asked)
        answer = parse_answer(asked, line)
        if not answer:
            if line:
                print_text(f"  {expected(asked)}")
            return False
        try:
            self._conversation.answer(asked, answer)
        except AdminError as error:
            print_text(f"hermes: {error}", file=sys.stderr)
            return self._conversation.is_settled(asked)
        return True


def _until_left(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if _leaves(line):
            return
        yield line


def _leaves(line: str) -> bool:
    return line.strip().partition(" ")[0].lower() in _LEAVE
