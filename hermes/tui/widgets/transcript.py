"""Scrolling conversation. It stays at the end while a person has not scrolled away from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import Static

from hermes.tui.widgets.blocks import AnswerBlock, MessageBlock, NoticeBlock, ToolBlock, widget_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual.widget import Widget

    from hermes.tui.view_model import Block

MAX_BLOCKS: Final = 300  # on the screen, while a person is at the end
_MORE: Final = 100  # blocks that are added at the top at a time


class TranscriptView(VerticalScroll, can_focus=False):
    DEFAULT_CSS = """
    TranscriptView { height: 1fr; padding: 0 1 1 1; scrollbar-size-vertical: 1; background: $background; }
    TranscriptView > .earlier { color: $text-muted; text-align: center; display: none; }
    TranscriptView > .earlier.open { display: block; }
    """

    class EarlierWanted(Message):
        """The person is at the top, and all loaded blocks are shown."""

    def __init__(self, media: Path) -> None:
        """`media`: directory of the media store, with pictures of stored messages."""
        super().__init__(id="transcript")
        self._media = media
        self._given: Sequence[Block] = ()
        self._shown: dict[str, Block] = {}
        self._widgets: dict[str, Widget] = {}
        self._most = MAX_BLOCKS
        self._has_earlier = False  # in the store
        self._is_loading = False
        self._hint = Static("↑ earlier messages: PageUp", classes="earlier", markup=False)

    def on_mount(self) -> None:
        self.mount(self._hint)
        self.anchor()

    async def show(self, blocks: Sequence[Block], *, has_earlier: bool = False) -> None:
        """Show these blocks; only what changed is drawn again. `has_earlier`: the store has blocks before them."""
        if not self._is_loading:  # else `show_earlier` follows soon
            self._given, self._has_earlier = blocks, has_earlier
            await self._draw()

    async def show_earlier(self, blocks: Sequence[Block], *, has_earlier: bool) -> None:
        """Show these blocks, with more of them at the top. What is on the screen stays in its place."""
        self._given, self._has_earlier = blocks, has_earlier
        self._most = len(self._shown) + _MORE
        height, at = self.virtual_size.height, self.scroll_y
        await self._draw()
        self.call_after_refresh(self._scroll_by_growth, height, at)

    async def _draw(self) -> None:
        if self.is_vertical_scroll_end and not self._is_loading:
            self._most = MAX_BLOCKS
        blocks = self._given[-self._most :]
        if self._shown and not self.is_vertical_scroll_end:
            blocks = self._from_first_shown(blocks)
        keys = {each.key for each in blocks}
        for key in [key for key in self._widgets if key not in keys]:
            self._shown.pop(key)
            await self._widgets.pop(key).remove()
        await self._add([each for each in blocks if each.key not in self._widgets], blocks)
        for block in blocks:
            if self._shown.get(block.key) is not block:
                widget = self._widgets[block.key]
                if isinstance(widget, AnswerBlock | MessageBlock | NoticeBlock | ToolBlock):
                    await widget.show(block)
                self._shown[block.key] = block
        self._hint.set_class(self._has_earlier or len(blocks) < len(self._given), "open")

    def _from_first_shown(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Return the blocks with those that a person reads: new ones at the end remove none at the top."""
        first = next((at for at, each in enumerate(self._given) if each.key in self._shown), len(self._given))
        return self._given[min(first, len(self._given) - len(blocks)) :]

    async def _add(self, new: list[Block], blocks: Sequence[Block]) -> None:
        if not new:
            return
        order = [each.key for each in blocks]
        for block in new:
            self._widgets[block.key] = widget_of(block, self._media)
            self._shown[block.key] = block
        added = {block.key for block in new}
        run: list[Widget] = []
        for at, key in enumerate(order):  # new ones can be at the top and at the end
            if key in added:
                run.append(self._widgets[key])
            if run and (at + 1 == len(order) or order[at + 1] not in added):
                before = self._widgets[order[at + 1]] if at + 1 < len(order) else None
                await self.mount_all(run, before=before)
                run = []

    # ------------------------------------------------------------ earlier blocks

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if new_value <= 0 < old_value:
            self.want_earlier()

    def on_mouse_scroll_up(self) -> None:
        if self.scroll_y <= 0:
            self.want_earlier()

    def want_earlier(self) -> None:
        """Show earlier blocks, if there are any."""
        hidden = len(self._given) - len(self._shown)
        if self._is_loading or not (hidden or self._has_earlier):
            return
        self._is_loading = True
        if hidden:
            self.run_worker(self.show_earlier(self._given, has_earlier=self._has_earlier))
        else:
            self.post_message(self.EarlierWanted())

    def _scroll_by_growth(self, height: int, at: float) -> None:
        self._is_loading = False
        self.scroll_to(y=at + self.virtual_size.height - height, animate=False)

    # ------------------------------------------------------------ tool calls

    def tick(self) -> None:
        for key, block in self._shown.items():
            widget = self._widgets[key]
            if block.is_open and isinstance(widget, ToolBlock):
                widget.tick()

    def fold_all(self) -> None:
        """Unfold all tool calls, or fold them if one is unfolded."""
        calls = [each for each in self._widgets.values() if isinstance(each, ToolBlock)]
        unfold = not any(each.is_unfolded for each in calls)
        for each in calls:
            each.fold(unfold=unfold)
