"""Views of a running turn: text, tool calls and notices.

On a terminal, Markdown is rendered block by block, with the unfinished block below. Elsewhere the text is printed as
it is, and tool calls and notices on lines of their own.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Protocol

from hermes.cli.chat.fact import (
    NoticeShown,
    QuestionShown,
    Text,
    TextDiscarded,
    ToolCallBegan,
    ToolCallEnded,
    ToolCallProgress,
)
from hermes.cli.chat.turn_question import details
from hermes.cli.output import duration, one_line, printable, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.cli.chat.fact import Fact

_FENCES = ("```", "~~~")
_MIN_LINES = 3
_PLAIN_WIDTH = 100


class ChatView(Protocol):
    def show(self, fact: Fact) -> None: ...

    def make_way(self) -> None:
        """Prepare the screen for a line from elsewhere, above the unfinished text if possible."""
        ...

    def pause(self) -> None:
        """Stop updating the screen until the next fact."""
        ...

    def finish(self) -> None: ...


def make_view() -> ChatView:
    fancy = sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")
    return RichView() if fancy else PlainView()


def split_blocks(text: str) -> tuple[str, str]:
    """Split off the finished blocks: up to the last empty line outside of fenced code."""
    done = place = 0
    for line, is_code in _lines(text):
        place += len(line)
        if not is_code and not line.strip() and line.endswith("\n"):
            done = place
    return text[:done], text[done:]


def keep_lines(markdown: str) -> str:
    """Make line ends outside of code hard breaks; Markdown would join the lines."""
    return "".join(
        line if is_code or not line.endswith("\n") or not line.strip() else f"{line[:-1]}  \n"
        for line, is_code in _lines(markdown)
    )


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line with its end, and whether it is fenced code or a fence."""
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = next((each for each in _FENCES if line.lstrip().startswith(each)), "")
        yield line, bool(fence or mark)
        if mark and fence in ("", mark):
            fence = "" if fence else mark


class Calls:
    """Running tool calls, and the lines that describe them."""

    def __init__(self) -> None:
        self.running: dict[str, tuple[ToolCallBegan, str]] = {}  # and the last line of progress
        self._asked: dict[str, str] = {}  # text of each call that needed approval

    def began(self, fact: ToolCallBegan) -> None:
        self.running[fact.call] = (fact, "")

    def asked(self, fact: QuestionShown) -> None:
        if fact.approval:
            self._asked[fact.call] = next(iter(details(fact)), "").strip("`")

    def progressed(self, fact: ToolCallProgress) -> None:
        lines = [line for line in printable(fact.text).splitlines() if line.strip()]
        if fact.call in self.running and lines:
            self.running[fact.call] = (self.running[fact.call][0], one_line(lines[-1]))

    def ended(self, fact: ToolCallEnded, width: int) -> str:
        """Return the line for an ended call; empty for an answered question."""
        began = self.running.pop(fact.call, None)
        if began is None and fact.outcome == "ok":
            return ""
        asked = self._asked.pop(fact.call, None)
        summary = began[0].summary if began else asked or fact.summary
        return call_line(fact.name, summary, f"({_ending(fact, asked=asked is not None)})", width)


def _ending(fact: ToolCallEnded, *, asked: bool) -> str:
    if fact.outcome == "denied":  # by a person, or by the rules without asking
        return "denied" if asked else "blocked"
    how = "" if fact.outcome == "ok" else f"{fact.outcome.replace('_', ' ')}, "
    return f"{how}{duration(fact.took_s)}"


def call_line(name: str, summary: str, end: str, width: int) -> str:
    room = max(10, width - len(name) - len(end) - 4)
    said = shortened(summary, room)
    label = said if said.startswith(name) else ": ".join(filter(None, (name, said)))
    return one_line(f"{label} {end}")


class PlainView:
    def __init__(self) -> None:
        self._calls = Calls()
        self._in_line = False

    def show(self, fact: Fact) -> None:
        match fact:
            case Text(text=text):
                print(printable(text), end="", flush=True)
                self._in_line = not text.endswith("\n")
            case ToolCallBegan():
                self._calls.began(fact)
            case QuestionShown():
                self._calls.asked(fact)
            case ToolCallProgress():
                self._calls.progressed(fact)
            case ToolCallEnded():
                if line := self._calls.ended(fact, _PLAIN_WIDTH):
                    self._line(f"[{line}]")
            case TextDiscarded():
                self._line("(interrupted; the answer starts again:)")
            case NoticeShown(text=text):
                self._line(f"({one_line(text)})")
            case _:
                pass

    def make_way(self) -> None:
        self.pause()

    def pause(self) -> None:
        if self._in_line:
            print(flush=True)
            self._in_line = False

    def finish(self) -> None:
        self.pause()

    def _line(self, text: str) -> None:
        self.pause()
        print(text, flush=True)


class RichView:
    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(highlight=False)
        self._calls = Calls()
        self._rest = ""
        self._live: Any = None

    def show(self, fact: Fact) -> None:
        match fact:
            case Text(text=text):
                done, self._rest = split_blocks(self._rest + printable(text))
                self._render(done)
            case ToolCallBegan():
                self._flush()
                self._calls.began(fact)
            case QuestionShown():
                self._calls.asked(fact)
                return
            case ToolCallProgress():
                self._calls.progressed(fact)
            case ToolCallEnded():
                mark = "\N{CHECK MARK}" if fact.outcome == "ok" else "\N{BALLOT X}"
                if line := self._calls.ended(fact, self._console.width - 2):
                    self._dim(f"{mark} {line}")
            case TextDiscarded():
                self._rest = ""
                self._dim("(interrupted; the answer starts again:)")
            case NoticeShown(text=text):
                self._flush()
                self._dim(f"({one_line(text)})")
            case _:
                return
        self._refresh()

    def make_way(self) -> None:
        """Rich prints above the live text, so there is nothing to do."""

    def pause(self) -> None:
        self._flush()
        self._stop()

    def finish(self) -> None:
        self.pause()
        self._calls.running.clear()

    def _flush(self) -> None:
        """Render the unfinished block: no more text follows."""
        rest, self._rest = self._rest, ""
        if rest.strip():
            self._stop()
            self._render(rest)

    def _render(self, markdown: str) -> None:
        if markdown.strip():
            from rich.markdown import Markdown

            # Links are printed in full: the link text comes from the model and can mislead.
            self._console.print(Markdown(keep_lines(markdown), hyperlinks=False))
            self._console.print()

    def _dim(self, text: str) -> None:
        from rich.text import Text as Styled

        self._console.print(Styled(text, style="dim"))

    def _refresh(self) -> None:
        from rich.live import Live
        from rich.text import Text as Styled

        pending = self._pending()
        if pending is None:
            self._stop()
            return
        if self._live is None:
            self._live = Live(Styled(""), console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(pending, refresh=True)

    def _pending(self) -> Any:
        """Return the end of the unfinished text, as much as fits, or the running calls."""
        from rich.text import Text as Styled

        width = self._console.width
        if self._rest.strip():
            lines = Styled(self._rest.rstrip("\n")).wrap(self._console, width)
            return Styled("\n").join(lines[-max(_MIN_LINES, self._console.height - 2) :])
        running = [
            f"\N{HORIZONTAL ELLIPSIS} {call_line(began.name, began.summary, progress and f'| {progress}', width - 2)}"
            for began, progress in self._calls.running.values()
        ]
        return Styled("\n".join(shortened(line, width) for line in running), style="dim") if running else None

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
