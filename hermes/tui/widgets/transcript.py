"""Scrolling conversation. It stays at the end while a person has not scrolled away from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.containers import VerticalScroll

from hermes.tui.widgets.blocks import AnswerBlock, MessageBlock, NoticeBlock, ToolBlock, widget_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.widget import Widget

    from hermes.tui.view_model import Block

MAX_BLOCKS: Final = 300  # on the screen; earlier ones are in the store


class TranscriptView(VerticalScroll, can_focus=False):
    DEFAULT_CSS = """
    TranscriptView { height: 1fr; padding: 0 1 1 1; scrollbar-size-vertical: 1; background: $background; }
    """

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self._shown: dict[str, Block] = {}
        self._widgets: dict[str, Widget] = {}

    def on_mount(self) -> None:
        self.anchor()

    async def show(self, blocks: Sequence[Block]) -> None:
        """Show these blocks; only what changed is drawn again."""
        blocks = blocks[-MAX_BLOCKS:]
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

    async def _add(self, new: list[Block], blocks: Sequence[Block]) -> None:
        if not new:
            return
        order = [each.key for each in blocks]
        after = order[order.index(new[-1].key) + 1 :]
        before = next((self._widgets[key] for key in after if key in self._widgets), None)
        for block in new:
            self._widgets[block.key] = widget_of(block)
            self._shown[block.key] = block
        await self.mount_all([self._widgets[block.key] for block in new], before=before)

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
