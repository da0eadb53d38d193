"""Lines of a running turn: text as it comes, tool calls and notices on lines of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.chat.fact import (
    NoticeShown,
    QuestionShown,
    Text,
    TextDiscarded,
    ToolCallBegan,
    ToolCallEnded,
)
from hermes.cli.chat.turn_question import details
from hermes.cli.output import duration, one_line, printable, shortened

if TYPE_CHECKING:
    from hermes.cli.chat.fact import Fact

_WIDTH = 100  # of a tool call's line


class LineView:
    def __init__(self) -> None:
        self._summaries: dict[str, str] = {}  # of the calls that began
        self._asked: dict[str, str] = {}  # text of each call that needed approval
        self._in_line = False

    def show(self, fact: Fact) -> None:
        match fact:
            case Text(text=text):
                print(printable(text), end="", flush=True)
                self._in_line = not text.endswith("\n")
            case ToolCallBegan():
                self._summaries[fact.call] = fact.summary
            case QuestionShown(approval=True):
                self._asked[fact.call] = next(iter(details(fact)), "").strip("`")
            case ToolCallEnded():
                self._ended(fact)
            case TextDiscarded():
                self._line("(interrupted; the answer starts again:)")
            case NoticeShown(text=text):
                self._line(f"({one_line(text)})")
            case _:
                pass

    def finish(self) -> None:
        """End the line of an unfinished text."""
        if self._in_line:
            print(flush=True)
            self._in_line = False

    def _line(self, text: str) -> None:
        self.finish()
        print(text, flush=True)

    def _ended(self, fact: ToolCallEnded) -> None:
        began = self._summaries.pop(fact.call, None)
        if began is None and fact.outcome == "ok":  # an answered question
            return
        asked = self._asked.pop(fact.call, None)
        summary = fact.summary if began is None and asked is None else began or asked or ""
        self._line(f"[{_call_line(fact.name, summary, f'({_ending(fact, asked=asked is not None)})')}]")


def _ending(fact: ToolCallEnded, *, asked: bool) -> str:
    if fact.outcome == "denied":  # by a person, or by the rules without asking
        return "denied" if asked else "blocked"
    how = "" if fact.outcome == "ok" else f"{fact.outcome.replace('_', ' ')}, "
    return f"{how}{duration(fact.took_s)}"


def _call_line(name: str, summary: str, end: str) -> str:
    said = shortened(summary, max(10, _WIDTH - len(name) - len(end) - 4))
    label = said if said.startswith(name) else ": ".join(filter(None, (name, said)))
    return one_line(f"{label} {end}")
