"""Queue of messages typed while an answer runs. They are submitted immediately; their answers are shown later.

Only messages that the daemon cannot accept yet are kept here.
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
    "queued": "queued, answered after this turn",
    "steering": "steering, added to this turn at its next step",
    "interrupting": "interrupting this answer",
    "answer": "taken as the answer to the question",
}
_SENT = "sent, answered next"


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """Turn that started while another one ran."""

    turn: str
    merges: bool  # it may have become part of the other turn
    text: str = ""  # its message, if known


Later: TypeAlias = str | SubmittedTurn | Begun


class TypedAhead:
    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._waiting: deque[Later] = deque()
        self._kept: list[str] = []  # until the open question is answered

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
            print_text(f"(kept until a daemon is back: {printable(line)})")
        except HermesError as error:
            print_text(f"hermes: {error} (not stored: {printable(line)})", file=sys.stderr)
        else:
            print_text(f"({_HANDLED.get(sent.handling, _SENT)}: {printable(line)})")
            if sent.handling == "answer":  # it belongs to the turn that is shown
                sent.feed.close()
            else:
                self._waiting.append(sent)

    def keep(self, line: str) -> None:
        """Keep a line typed before a question: the daemon would take it as the answer."""
        self._kept.append(line)
        print_text(f"(sent after your answer: {printable(line)})")

    def send_kept(self) -> None:
        kept, self._kept = self._kept, []
        for line in kept:
            self.send(line)

    def merged(self, turn: str) -> str:
        """Remove a message that became part of the running turn, and return its text; empty if unknown."""
        found = next((each for each in self._waiting if not isinstance(each, str) and each.turn == turn), None)
        if found is None:
            return ""
        self._waiting.remove(found)
        if isinstance(found, SubmittedTurn):
            found.feed.close()
        return found.text

    def close_streams(self) -> None:
        """Close the streams of a daemon that is gone; the turns are followed at the next one."""
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            if isinstance(each, SubmittedTurn):
                each.feed.close()
                self._waiting.append(Begun(turn=each.turn, merges=each.handling == "steering", text=each.text))
            else:
                self._waiting.append(each)

    def send_unsent(self) -> None:
        """Submit the kept messages, now that a daemon is back."""
        lines = [each for each in self._waiting if isinstance(each, str)]
        self._waiting = deque(each for each in self._waiting if not isinstance(each, str))
        for line in lines:
            self.send(line)

    def close(self) -> list[str]:
        """Close all streams, and return the messages that were not sent."""
        self.close_streams()
        return [*self._kept, *(each for each in self._waiting if isinstance(each, str))]
