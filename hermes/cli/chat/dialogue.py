"""The conversation of `hermes chat`: a prompt, answers, commands, and what a turn asks in between.

What is typed while an answer runs is read line by line and goes to the daemon at once, commands and messages alike.
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
from hermes.cli.chat.turn_question import WaitingError, asked_back, details, expected, headline, prompt, understood
from hermes.cli.chat.typed_ahead import Ahead, Begun
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
/quit, /exit, /q    leave, like Ctrl-D; the session stays
Ctrl-C              stops an answer; at the prompt it clears what is typed, and leaves an empty line
Alt-Enter           begins a new line of the same message
Other lines that begin with a slash and a word are commands to the daemon, also while an answer runs.
Anything else is a message; several lines pasted at once are one. While an answer runs it waits for its turn, is told
to that turn or interrupts it, as /busy says."""


class _LeftError(Exception):
    """The person left in the middle of something."""


class Dialogue:
    def __init__(
        self, conversation: Conversation, client: AdminClient, *, yolo: bool, inside: bool, resumed: bool
    ) -> None:
        self._conversation = conversation
        self._client = client
        self._yolo = yolo
        self._inside = inside
        self._interactive = sys.stdin.isatty()
        self._ahead = Ahead(conversation)
        self._leaving = False  # as soon as that is done
        self._asking = False  # somebody is asked, and has not answered
        self._news = News(conversation, client, resumed=resumed)
        self._resumed = resumed
        self._question: dict[str, str] = {}  # what a line means after a command that asks first

    def run(self) -> int:
        opened, failed, said = self._conversation.session, False, self._resumed
        try:
            if self._resumed:
                self._take_up()
            for message in self._messages():
                done = self._see_to(message)
                failed |= not done
                said |= isinstance(message, str) and bool(message.strip()) and not message.lstrip().startswith("/")
        except _LeftError:
            said = True
        finally:
            for line in self._ahead.close():
                print_text(f"(never sent: {printable(line)})")
        if said or self._conversation.session != opened:
            print(f"Go on with: hermes chat -r {self._conversation.session}")
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
                message = read_message("you> ", self._news.look)
            except (EOFError, KeyboardInterrupt):
                print()
                return
            except ClearedError:
                print()
                continue
            if _leaves(message):
                return
            yield message

    def _see_to(self, message: Later) -> bool:
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

    def _take_up(self) -> None:
        """What the session asks already. Where nobody types, the next line may be the answer."""
        turn = self._conversation.asking_turn() if self._interactive else None
        if turn is not None:
            self._turn(lambda: self._conversation.watch(turn))

    # ------------------------------------------------------------ commands

    def _help(self) -> None:
        print(_HELP)
        try:
            listed = self._client.get("/api/commands")["commands"]
        except (HermesError, KeyError):  # a daemon that takes none
            return
        print_commands(listed)

    def _command(self, text: str) -> bool:
        restarts = text.partition(" ")[0].lower() == "/restart"
        before = current_boot(self._client) if restarts else None
        reply = self._reply_to(text)
        if restarts and reply is not None and reply.ok:
            self._await_life(before, make_view())
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
        self._question = asked_back(text, reply.choices)
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
        except (NotRunningError, WaitingError, _LeftError):  # nobody is left to talk to, on one side or the other
            view.finish()
            raise
        except StoppedError as error:
            view.finish()
            print_text(f"({error})")
            return False
        except HermesError as error:
            view.finish()
            print_text(f"hermes: {error}", file=sys.stderr)
            if isinstance(error, TurnFailedError) and "/retry" not in str(error):
                print_text("(/retry tries it again)")
            return False
        else:
            for notice in self._closing_notices():
                view.show(NoticeShown(text=notice))
            view.finish()
        return True

    def _follow(self, begin: Callable[[], Generator[Fact]], view: ChatView) -> None:
        """To its end, also across a restart of the daemon."""
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
            self._ahead.outlive()
            turn = self._conversation.turn
            if turn is None and isinstance(error, LostError):
                return  # nobody knows whether there is a turn, and that was said
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
                    view.show(NoticeShown(text=f"this turn has heard: {text}"))
            case _:
                view.show(fact)

    def _await_daemon(self, error: NotRunningError, view: ChatView) -> None:
        print_text(f"hermes: {error}", file=sys.stderr)
        meanwhile = "" if self._asking else "what you type is kept, "
        what = self._kept(error)
        try:
            print_text(f"(waiting up to {AWAY_S:.0f} s for a daemon; {meanwhile}Ctrl-C leaves)")
            self._await_life(None, view)
        except (_LeftError, KeyboardInterrupt):  # the latter before the wait had begun
            print_text(f"({what})")
            raise _LeftError from None
        except NotRunningError as none:
            where = f"go on with: hermes chat -r {self._conversation.session}"
            raise NotRunningError(f"{none}. {what}; {where}") from none

    def _kept(self, error: NotRunningError) -> str:
        if self._asking:
            return "The question is kept and waits for your answer"
        if self._conversation.turn is not None:
            return "The message is stored, and the answer will be finished when a daemon runs again"
        return "The message may not be stored" if isinstance(error, LostError) else "The message was not sent"

    def _await_life(self, before: int | None, view: ChatView) -> None:
        """What is typed meanwhile is read, so that it is not the shell that gets it in the end."""
        try:
            with echoing(on=False):
                for _ in until_back(self._client, after=before):
                    self._listen(view, self._not_now if self._asking else None)
                    if self._leaving:
                        raise _LeftError
        except KeyboardInterrupt:
            drop_typed()
            raise _LeftError from None
        except NotRunningError:
            drop_typed()
            raise
        print_text("(the daemon is back)")

    def _not_now(self, _line: str) -> None:
        print_text("(not taken: the question comes again when a daemon is back)")

    def _closing_notices(self) -> Iterator[str]:
        if self._conversation.last["finish_reason"] == "length":
            yield "cut off: the model may not write more at once"
        if notice := self._conversation.last["notice"]:
            yield notice

    # ------------------------------------------------------------ what is typed meanwhile

    def _listen(self, view: ChatView, take: Callable[[str], None] | None = None) -> None:
        """`take`: who gets a message; the daemon does if nobody is named."""
        if not self._interactive or self._leaving:
            return
        try:
            for line in typed_lines():
                if line:
                    view.make_way()
                    self._hear(line, take or self._ahead.send)
        except EOFError:
            self._leaving = True

    def _hear(self, line: str, take: Callable[[str], None]) -> None:
        if _leaves(line):
            raise _LeftError
        if is_command(line):
            print_text(f"you> {printable(line)}")
            self._give(line)
        else:
            take(line)

    def _give(self, command: str) -> None:
        """A command in the middle of a turn, which goes on being followed."""
        if command.lower() == "/help":
            self._help()
            return
        reply = self._reply_to(command)
        if reply is not None and reply.turn not in (None, self._conversation.turn):
            self._ahead.add(Begun(turn=str(reply.turn), merges=command.lower().startswith("/steer")))

    # ------------------------------------------------------------ what is asked

    def _asked(self, asked: QuestionShown, view: ChatView) -> None:
        view.show(asked)
        view.pause()
        if asked.approval and self._yolo:
            self._conversation.answer(asked, "once")
            view.show(NoticeShown(text=f"allowed by --yolo: {' '.join(details(asked))}"))
            return
        self._listen(view, self._ahead.keep)  # what was typed before anything was asked is no answer
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
        """Whether this was all that was asked for."""
        if _leaves(line):
            raise EOFError
        if is_command(line):
            self._give(line)
            return self._conversation.is_settled(asked)
        answer = understood(asked, line)
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
