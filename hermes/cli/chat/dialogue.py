"""Line mode of `hermes chat`: prompt, answers, slash commands, and questions of a turn.

For pipes, dumb terminals and screen readers. Lines that are typed while an answer runs wait in the terminal.
"""

from __future__ import annotations

import secrets
import select
import sys
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from hermes.cli.chat.conversation import StoppedError, TurnFailedError, is_command
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
from hermes.cli.client import AdminError
from hermes.cli.command_list import print_commands
from hermes.cli.next_boot import across_restarts, current_boot, until_back
from hermes.cli.output import print_text, printable
from hermes.domain.errors import HermesError, NotRunningError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from hermes.cli.chat.conversation import CommandResult, Conversation
    from hermes.cli.client import AdminClient
    from hermes.tui.view_model import OpenPrompt

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
            key = secrets.token_hex(16)
            return self._turn(lambda: self._conversation.ask(text, key))
        return True

    def _resume_question(self) -> None:
        """Show the open question of a resumed session. Without a terminal the next line may be the answer."""
        pending = self._conversation.pending() if self._interactive else None
        if pending is not None:
            turn = str(pending["turn_id"])
            self._turn(lambda: self._conversation.watch(turn), resumes=True)

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
        if reply is None or not reply.turn:
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

    def _turn(self, begin: Callable[[], Generator[None]], *, resumes: bool = False) -> bool:
        lines = LineView()
        try:
            self._follow(begin, lines, resumes=resumes)
        except KeyboardInterrupt:
            lines.finish()
            if self._conversation.is_away:
                print_text(f"({self._conversation.kept()})")
                raise _LeftError from None
            self._conversation.stop()
            print("(stopped)")
        except (NotRunningError, WaitingError):  # the daemon or the person is gone
            lines.finish()
            raise
        except StoppedError as error:
            lines.notice(str(error))
            return False
        except HermesError as error:
            lines.finish()
            print_text(f"hermes: {error}", file=sys.stderr)
            if isinstance(error, TurnFailedError) and not error.suggests_retry:
                print_text("(/retry tries again)")
            return False
        else:
            lines.finish()
            if self._conversation.notice:
                lines.notice(self._conversation.notice)
        return True

    def _follow(self, begin: Callable[[], Generator[None]], lines: LineView, *, resumes: bool) -> None:
        """Show a turn to its end, on a terminal also across a restart of the daemon."""
        conversation, settled = self._conversation, None
        conversation.begin()
        waits = self._interactive and not self._inside
        with closing(across_restarts(conversation, self._client, begin) if waits else begin()) as steps:
            for _ in steps:
                view = conversation.view
                if resumes and view.prompt is None and not conversation.is_away:
                    lines.skip(view)
                    continue
                resumes = False
                lines.show(view)
                if conversation.is_away:
                    settled = None  # asked again
                elif view.prompt is not None and view.prompt != settled:
                    lines.finish()
                    self._asked(view.prompt, lines)
                    settled = view.prompt

    # ------------------------------------------------------------ questions

    def _asked(self, asked: OpenPrompt, lines: LineView) -> None:
        if asked.approval and self._yolo:
            self._conversation.answer(asked, "once")
            lines.notice(f"allowed by --yolo: {' '.join(details(asked))}")
            return
        if not self._interactive:
            raise WaitingError(self._conversation.session, asked, inside=self._inside)
        print_text("\n  ".join([headline(asked), *details(asked)]))
        with suppress(NotRunningError):  # asked again when a daemon is back
            while not self._answers(asked, self._read_answer(asked)):
                pass

    def _read_answer(self, asked: OpenPrompt) -> str:
        try:
            line = input(prompt(asked)).strip()
        except EOFError:
            print()
            line = _LEAVE[0]
        if _leaves(line):
            raise WaitingError(self._conversation.session, asked, inside=self._inside)
        return line

    def _answers(self, asked: OpenPrompt, line: str) -> bool:
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
