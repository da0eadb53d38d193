"""What is said while an answer runs. The daemon has it at once, and its own answer is shown after that one.

Only what the daemon cannot take yet is kept here, and it is said so.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING, TypeAlias

from hermes.cli.chat.conversation import SubmittedTurn
from hermes.cli.client import LostError
from hermes.cli.output import print_text, printable
from hermes.domain.errors import HermesError, NotRunningError
from hermes.domain.values import dataclass

if TYPE_CHECKING:
    from hermes.cli.chat.conversation import Conversation

_HANDLED = {
    "queued": "queued, answered after this",
    "steering": "steering, told to this turn at its next step",
    "interrupting": "interrupting this answer",
    "answer": "taken as the answer to what was asked",
}
_SENT = "sent, answered next"


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A turn that was begun while another one ran."""

    turn: str
    merges: bool  # it may have become part of that other one
    text: str = ""  # what was said in it, if that is known


Later: TypeAlias = str | SubmittedTurn | Begun


class Ahead:
    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._waiting: deque[Later] = deque()
        self._kept: list[str] = []  # until what is asked is answered

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def take(self) -> Later:
        return self._waiting.popleft()

    def add(self, begun: Begun) -> None:
        self._waiting.append(begun)

    def send(self, line: str) -> None:
        try:
            sent = self._conversation.submit(line)
        except LostError as error:
            print_text(f"hermes: {error}", file=sys.stderr)
        except NotRunningError:
            self._waiting.append(line)
            print_text(f"(kept here until a daemon is back: {printable(line)})")
        except HermesError as error:
            print_text(f"hermes: {error} (not stored: {printable(line)})", file=sys.stderr)
        else:
            print_text(f"({_HANDLED.get(sent.handling, _SENT)}: {printable(line)})")
            if sent.handling == "answer":  # of the turn that is being shown, which goes on
                sent.feed.close()
            else:
                self._waiting.append(sent)

    def keep(self, line: str) -> None:
        """It was typed before something was asked, and the daemon would take it for the answer."""
        self._kept.append(line)
        print_text(f"(said after your answer: {printable(line)})")

    def send_kept(self) -> None:
        kept, self._kept = self._kept, []
        for line in kept:
            self.send(line)

    def merged(self, turn: str) -> str:
        """What was said in that message, which is part of the running turn now; empty: it was not said here."""
        found = next((each for each in self._waiting if not isinstance(each, str) and each.turn == turn), None)
        if found is None:
            return ""
        self._waiting.remove(found)
        if isinstance(found, SubmittedTurn):
            found.feed.close()
        return found.text

    def outlive(self) -> None:
        """The daemon that was told is gone: the next one is asked what became of it."""
        told, self._waiting = self._waiting, deque()
        for each in told:
            if isinstance(each, SubmittedTurn):
                each.feed.close()
                self._waiting.append(Begun(turn=each.turn, merges=each.handling == "steering", text=each.text))
            else:
                self._waiting.append(each)

    def send_unsent(self) -> None:
        """A daemon is back."""
        lines = [each for each in self._waiting if isinstance(each, str)]
        self._waiting = deque(each for each in self._waiting if not isinstance(each, str))
        for line in lines:
            self.send(line)

    def close(self) -> list[str]:
        """What was never sent."""
        self.outlive()
        return [*self._kept, *(each for each in self._waiting if isinstance(each, str))]
