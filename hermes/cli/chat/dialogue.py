"""Line mode of `hermes chat`: prompt, answers, slash commands, and questions of a turn.

For pipes, dumb terminals and screen readers. Lines that are typed while an answer runs wait in the terminal.
"""

from __future__ import annotations

import select
import sys
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from hermes.cli.chat.conversation import StoppedError, TurnFailedError, is_command
from hermes.cli.chat.fact import NoticeShown, QuestionShown, SteeringTaken, TextDiscarded
from hermes.cli.chat.turn_question import (
    WaitingError,
    confirmations,
    details,
    expected,
    headline,
    parse_answer,
    prompt,
)
from hermes.cli.chat.view import LineView
from hermes.cli.client import AdminError, LostError
from hermes.cli.command_list import print_commands
from hermes.cli.next_boot import AWAY_S, current_boot, until_back
from hermes.cli.output import print_text, printable
from hermes.domain.errors import HermesError, NotRunningError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from hermes.cli.chat.conversation import CommandResult, Conversation
    from hermes.cli.chat.fact import Fact
    from hermes.cli.client import AdminClient

_PASTE_GAP_S = 0.03
_LEAVE = ("/quit", "/exit", "/q")
_OF_THE_INTERFACE = ("/theme", "/copy", "/keys")
_HELP = """\
/help               this list
/quit, /exit, /q    exit, like Ctrl-D; the session is kept
Ctrl-C              stop an answer; at the prompt: exit
Other lines that start with a slash and a word are commands for the daemon. Anything else is a message."""


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
        self._resumed = resumed
        self._asking = False  # a question is open on the terminal
        self._confirming: dict[str, str] = {}  # command for a typed yes or no, after a command that asks back

    def run(self) -> int:
        opened, failed, said = self._conversation.session, False, self._resumed
        with suppress(_LeftError):
            if self._resumed:
                self._resume_question()
            for line in self._lines():
                text = line.strip()
                said |= bool(text) and not text.startswith("/")
                failed |= not self._take(text)
        if said or self._conversation.session != opened:
            print(f"Continue with: hermes chat -r {self._conversation.session}")
        return 1 if failed and not self._interactive else 0

    def _lines(self) -> Iterator[str]:
        while True:
            try:
                line = _typed() if self._interactive else sys.stdin.readline()
            except (EOFError, KeyboardInterrupt):
                print()
                return
            if _leaves(line) or not (line or self._interactive):
                return
            yield line

    def _take(self, text: str) -> bool:
        confirming, self._confirming = self._confirming, {}
        text = confirming.get(text.lower(), text)
        if text.lower() == "/help":
            self._help()
        elif text.partition(" ")[0].lower() in _OF_THE_INTERFACE:
            print_text(
                "This command belongs to the terminal interface; plain lines do not have it. /help lists others."
            )
        elif is_command(text):
            return self._command(text)
        elif text:
            return self._turn(lambda: self._conversation.ask(text))
        return True

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
            for _ in until_back(self._client, after=before):
                pass
            print_text("(the daemon is back)")
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
        self._confirming = confirmations(text, reply.choices)
        return reply

    # ------------------------------------------------------------ a turn

    def _turn(self, begin: Callable[[], Generator[Fact]]) -> bool:
        view = LineView()
        try:
            self._follow(begin, view)
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

    def _follow(self, begin: Callable[[], Generator[Fact]], view: LineView) -> None:
        """Show a turn to its end, also across a restart of the daemon."""
        self._asking = False
        try:
            with closing(begin()) as facts:
                for fact in facts:
                    if isinstance(fact, QuestionShown):
                        self._asked(fact, view)
                    elif not isinstance(fact, SteeringTaken):
                        view.show(fact)
        except NotRunningError as error:
            if not self._interactive or self._inside:
                raise
            view.finish()
            self._await_daemon(error)
            turn = self._conversation.turn
            if turn is None and isinstance(error, LostError):
                return  # the message may not be stored, as the error says
            if turn is not None:
                view.show(TextDiscarded())
            self._follow(begin if turn is None else lambda: self._conversation.watch(turn), view)

    def _await_daemon(self, error: NotRunningError) -> None:
        print_text(f"hermes: {error}", file=sys.stderr)
        kept = self._kept(error)
        try:
            print_text(f"(waiting up to {AWAY_S:.0f} s for a daemon; Ctrl-C exits)")
            for _ in until_back(self._client):
                pass
        except KeyboardInterrupt:
            print_text(f"({kept})")
            raise _LeftError from None
        except NotRunningError as none:
            where = f"continue with: hermes chat -r {self._conversation.session}"
            raise NotRunningError(f"{none}. {kept}; {where}") from none
        print_text("(the daemon is back)")

    def _kept(self, error: NotRunningError) -> str:
        if self._asking:
            return "The question is stored and waits for your answer"
        if self._conversation.turn is not None:
            return "The message is stored and the turn resumes when a daemon runs again"
        return "The message may not be stored" if isinstance(error, LostError) else "The message was not sent"

    def _closing_notices(self) -> Iterator[str]:
        if self._conversation.last["finish_reason"] == "length":
            yield "cut off at the output limit of the model"
        if notice := self._conversation.last["notice"]:
            yield notice

    # ------------------------------------------------------------ questions

    def _asked(self, asked: QuestionShown, view: LineView) -> None:
        view.show(asked)
        view.finish()
        if asked.approval and self._yolo:
            self._conversation.answer(asked, "once")
            view.show(NoticeShown(text=f"allowed by --yolo: {' '.join(details(asked))}"))
            return
        if not self._interactive:
            raise WaitingError(self._conversation.session, asked, inside=self._inside)
        print_text("\n  ".join([headline(asked), *details(asked)]))
        self._asking = True
        while not self._answers(asked, self._read_answer(asked)):
            pass
        self._asking = False

    def _read_answer(self, asked: QuestionShown) -> str:
        try:
            line = input(prompt(asked)).strip()
        except EOFError:
            print()
            line = _LEAVE[0]
        if _leaves(line):
            raise WaitingError(self._conversation.session, asked, inside=self._inside)
        return line

    def _answers(self, asked: QuestionShown, line: str) -> bool:
        """Handle a line typed at a question. Return whether the question is settled."""
        if is_command(line):
            self._reply_to(line)
            return self._conversation.is_settled(asked)
        answer = parse_answer(asked, line)
        if not answer:
            if self._conversation.is_settled(asked):
                print_text("(answered elsewhere)")
                return True
            if line:
                print_text(f"  {expected(asked)}")
            return False
        try:
            self._conversation.answer(asked, answer)
        except AdminError as error:
            print_text(f"hermes: {error}", file=sys.stderr)
            return self._conversation.is_settled(asked)
        return True


def _typed() -> str:
    """Read a message. Lines that arrive together are a paste, and one message."""
    lines = [input("you> ")]
    while select.select([sys.stdin], [], [], _PASTE_GAP_S)[0]:
        try:
            lines.append(input())
        except EOFError:
            break
    return "\n".join(lines)


def _leaves(line: str) -> bool:
    return line.strip().partition(" ")[0].lower() in _LEAVE
