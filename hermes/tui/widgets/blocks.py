"""Widgets of the conversation: messages, streamed answers, tool calls that fold, notices."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.text import Text
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Markdown, Static

from hermes.tui.view_model import Block, BlockKind
from hermes.tui.widgets.picture import Picture
from hermes.tui.widgets.plain_text import (
    coloured_diff,
    duration,
    first_lines,
    is_diff,
    last_lines,
    one_line,
    printable,
)

if TYPE_CHECKING:
    from pathlib import Path

    from markdown_it import MarkdownIt
    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.widget import Widget
    from textual.widgets.markdown import MarkdownStream

_LIVE_LINES: Final = 6  # of a running call's output
_DIFF_LINES: Final = 40  # of a diff that is shown unasked
_LINES: Final = 400  # of an unfolded result
_MESSAGE_LINES: Final = 40  # of a long message


class MessageBlock(Vertical):
    """Message of the person, with its pictures. A long paste shows its beginning."""

    DEFAULT_CSS = """
    MessageBlock {
        margin: 1 0 0 0; padding: 0 1; height: auto; background: $surface; border-left: outer $primary;
        color: $foreground;
    }
    """

    def __init__(self, block: Block, media: Path) -> None:
        """`media`: directory of the media store."""
        super().__init__()
        self._block = block
        self._media = media

    def compose(self) -> ComposeResult:
        text, more = first_lines(printable(self._block.text), _MESSAGE_LINES)
        shown = Text(text)
        if more:
            shown.append(f"\n… {more:,} more lines", "dim")
        if text:
            yield Static(shown, markup=False)
        for name in self._block.pictures:
            yield Picture(self._media / name)  # an absolute path stays as it is

    async def show(self, block: Block) -> None:
        """A message does not change."""


class NoticeBlock(Static):
    DEFAULT_CSS = "NoticeBlock { margin: 1 0 0 0; padding: 0 2; color: $text-muted; }"

    def __init__(self, block: Block) -> None:
        super().__init__(Text(printable(block.text)), markup=False)

    async def show(self, block: Block) -> None:
        self.update(Text(printable(block.text)))


class AnswerBlock(Markdown):
    """Answer of the model as Markdown. Text that is appended is parsed from the last block on."""

    DEFAULT_CSS = """
    AnswerBlock { margin: 1 0 0 0; padding: 0 1; background: transparent; height: auto; }
    AnswerBlock MarkdownH1 { content-align: left middle; margin: 0 0 1 0; }
    AnswerBlock MarkdownFence { margin: 0 0 1 0; }
    """

    def __init__(self, block: Block) -> None:
        self._shown = printable(block.text)
        super().__init__(self._shown, parser_factory=_parser, open_links=False)
        self._stream: MarkdownStream | None = None

    async def show(self, block: Block) -> None:
        text = printable(block.text)
        if text != self._shown and text.startswith(self._shown):
            self._stream = self._stream or Markdown.get_stream(self)
            await self._stream.write(text[len(self._shown) :])
        elif text != self._shown:
            await self._end_stream()
            await self.update(text)
        self._shown = text
        if not block.is_open:
            await self._end_stream()

    async def _end_stream(self) -> None:
        if self._stream is not None:
            stream, self._stream = self._stream, None
            await stream.stop()


def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - only answers need it

    parser = MarkdownIt("gfm-like")
    parser.core.ruler.push("hard_breaks", _keep_line_ends)
    return parser


def _keep_line_ends(state: Any) -> None:
    """Keep line ends of a paragraph; Markdown would join the lines."""
    for token in state.tokens:
        for child in token.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"


class ToolBlock(Vertical, can_focus=True):
    """Tool call: one line, its output while it runs, and its result when it is unfolded."""

    DEFAULT_CSS = """
    ToolBlock { height: auto; margin: 1 0 0 0; padding: 0 1; border-left: outer $panel; }
    ToolBlock:focus { border-left: outer $accent; background: $boost; }
    ToolBlock.failed { border-left: outer $error; }
    ToolBlock > .head { height: auto; color: $text-muted; }
    ToolBlock > .body { height: auto; padding: 0 0 0 2; color: $text-muted; display: none; }
    ToolBlock.unfolded > .body { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,space", "fold", "fold or unfold")]

    def __init__(self, block: Block) -> None:
        super().__init__()
        self._block = block
        self._since = time.monotonic()
        self._head = Static(classes="head", markup=False)
        self._body = Static(classes="body", markup=False)
        self._wish: bool | None = None  # of the person: unfolded or not

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._body

    def on_mount(self) -> None:
        self._render_block()

    async def show(self, block: Block) -> None:
        self._block = block
        self._render_block()

    def fold(self, *, unfold: bool) -> None:
        self._wish = unfold
        self._render_block()

    def action_fold(self) -> None:
        self.fold(unfold=not self.is_unfolded)

    def on_click(self) -> None:
        self.action_fold()

    def tick(self) -> None:
        """Update the seconds of a running call."""
        if self._block.is_open:
            self._head.update(self._title())

    @property
    def is_unfolded(self) -> bool:
        if self._wish is not None:
            return self._wish
        return bool(self._block.text) if self._block.is_open else is_diff(self._block.result)

    def _render_block(self) -> None:
        block = self._block
        self._head.update(self._title())
        self.set_class(self.is_unfolded, "unfolded")
        self.set_class(block.outcome not in ("", "ok"), "failed")
        if self.is_unfolded:
            self._body.update(self._content())

    def _title(self) -> Text:
        block = self._block
        sign = "▾" if self.is_unfolded else "▸"
        name = one_line(block.name) or "tool"
        title = Text(f"{sign} {name} ", style="bold", no_wrap=True, overflow="ellipsis")
        said = one_line(block.title)
        title.append(said.removeprefix(name).lstrip(": "), "not bold")
        if block.is_open:
            title.append(f"  {duration(time.monotonic() - self._since)}", "not bold italic")
        elif block.outcome == "ok":
            title.append("  ✓", "bold green")
        elif block.outcome:
            title.append(f"  ✗ {block.outcome.replace('_', ' ')}", "bold red")
        if block.took_s >= 0.1:
            title.append(f" {duration(block.took_s)}", "not bold")
        return title

    def _content(self) -> Text:
        block = self._block
        if block.is_open:
            return Text(last_lines(printable(block.text), _LIVE_LINES))
        text, more = first_lines(printable(block.result or block.text or block.title), self._most())
        shown = coloured_diff(text) if is_diff(text) else Text(text)
        if more:
            shown.append(f"\n… {more:,} more lines", "dim")
        return shown

    def _most(self) -> int:
        return _LINES if self._wish else _DIFF_LINES


_WIDGETS: Final = {
    BlockKind.ANSWER: AnswerBlock,
    BlockKind.TOOL: ToolBlock,
    BlockKind.NOTICE: NoticeBlock,
}


def widget_of(block: Block, media: Path) -> Widget:
    """Return the widget of a block."""
    if block.kind is BlockKind.USER:
        return MessageBlock(block, media)
    made: Widget = _WIDGETS[block.kind](block)
    return made
