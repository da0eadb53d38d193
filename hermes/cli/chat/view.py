"""Lines of a running turn: text as it comes, tool calls and notices on lines of their own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hermes.cli.output import duration, one_line, print_text, printable, shortened
from hermes.tui.view_model import BlockKind

if TYPE_CHECKING:
    from hermes.tui.view_model import Block, ChatView

_WIDTH = 100  # of a tool call's line


class LineView:
    """Prints what each view has more than the one before."""

    def __init__(self) -> None:
        self._printed: dict[str, str] = {}  # blocks, with the text of answers
        self._asked: dict[str, bool] = {}  # calls that waited for a person; true: for an approval
        self._in_line = False

    def show(self, view: ChatView) -> None:
        if view.prompt is not None:
            self._asked[f"{view.turn}.{view.prompt.call}"] = view.prompt.approval
        for block in view.blocks:
            if block.kind is BlockKind.ANSWER:
                self._answer(block)
            elif block.key not in self._printed and (block.outcome or block.kind is BlockKind.NOTICE):
                self._printed[block.key] = ""
                self._tool(block) if block.kind is BlockKind.TOOL else self.notice(block.text)

    def skip(self, view: ChatView) -> None:
        """Print nothing of what the view has by now."""
        self._printed |= {block.key: block.text for block in view.blocks if block.outcome or block.text}

    def finish(self) -> None:
        """End the line of an unfinished text."""
        if self._in_line:
            print(flush=True)
            self._in_line = False

    def notice(self, text: str) -> None:
        self.finish()
        print(f"({one_line(text)})", flush=True)

    def _answer(self, block: Block) -> None:
        printed = self._printed.get(block.key, "")
        if not block.text and not self._in_line:  # it starts again, after a notice that told why
            self._printed[block.key] = ""
        if printed.startswith(block.text):  # also while a text that was cut off comes again
            return
        if not printed:
            self.finish()
        elif not block.text.startswith(printed):
            self.notice("interrupted; the answer starts again:")
            printed = ""
        print(printable(block.text[len(printed) :]), end="", flush=True)
        self._printed[block.key] = block.text
        self._in_line = not block.text.endswith("\n")

    def _tool(self, block: Block) -> None:
        approval = self._asked.get(block.key)
        if approval is False and block.outcome == "ok":  # a question that was answered
            return
        if block.outcome == "denied":  # by a person, or by the rules without asking
            ending = "denied" if approval else "blocked"
        else:
            how = "" if block.outcome == "ok" else f"{block.outcome.replace('_', ' ')}, "
            ending = f"{how}{duration(block.took_s)}"
        self.finish()
        print(f"[{_call_line(block.name, block.title, f'({ending})')}]", flush=True)


class AnswerView(LineView):
    """Prints the text alone, if at all; notices go to stderr."""

    def __init__(self, *, streams: bool) -> None:
        super().__init__()
        self._streams = streams

    def notice(self, text: str) -> None:
        self.finish()
        print_text(f"hermes: {one_line(text)}", file=sys.stderr)

    def _answer(self, block: Block) -> None:
        if self._streams:
            super()._answer(block)

    def _tool(self, _block: Block) -> None:
        self.finish()


def _call_line(name: str, summary: str, end: str) -> str:
    said = shortened(summary, max(10, _WIDTH - len(name) - len(end) - 4))
    label = said if said.startswith(name) else ": ".join(filter(None, (name, said)))
    return one_line(f"{label} {end}")
