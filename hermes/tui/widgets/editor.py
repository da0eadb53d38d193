"""Multi-line editor. Enter sends; Alt-Enter, Ctrl-J or a trailing backslash begin a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events
from textual.message import Message
from textual.widgets import TextArea

from hermes.tui.chat.input_history import InputHistory

if TYPE_CHECKING:
    from collections.abc import Callable


class PromptEditor(TextArea):
    DEFAULT_CSS = """
    PromptEditor {
        height: auto; min-height: 1; max-height: 12; border: none; border-left: outer $primary; padding: 0 1;
        background: $surface; scrollbar-size-vertical: 1;
    }
    PromptEditor:focus { border: none; border-left: outer $accent; }
    """

    class Submitted(Message):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class ScreenKey(Message):
        """Key that belongs to the screen, in its order among typed characters."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class MenuKey(Message):
        """Key for the completion menu: up, down, accept or submit."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, history: InputHistory) -> None:
        super().__init__(
            show_line_numbers=False, soft_wrap=True, highlight_cursor_line=False, tab_behavior="focus", id="editor"
        )
        self._history = history
        self.menu_open = False  # up, down, Tab and Enter belong to the completion menu
        self.leaves_by_tab = False  # a question with choices is open: Tab goes there, also with text in the editor
        self.cursor_blink = False  # each blink would be a packet over SSH

    def set_text(self, text: str) -> None:
        """Replace the text, with the cursor at its end."""
        self.text = text
        self.move_cursor(self.document.end)

    def line_before_cursor(self) -> str:
        row, column = self.cursor_location
        return self.document.get_line(row)[:column]

    async def _on_key(self, event: events.Key) -> None:
        """Handle our keys. Unlike a binding with priority, this keeps their order among typed characters."""
        action = self._action_of(event.key)
        if action is None:
            await super()._on_key(event)
            return
        event.prevent_default()
        event.stop()
        action()

    def _action_of(self, key: str) -> Callable[[], None] | None:
        match key:
            case "enter":
                return self.submit
            case "alt+enter" | "ctrl+j" | "shift+enter":
                return self._new_line
            case "up":
                return self._up
            case "down":
                return self._down
            case "tab":
                return self._complete
            case "ctrl+c" | "ctrl+d" | "ctrl+s" | "ctrl+n":
                return lambda: self._ask_screen(key)
            case _:
                return None

    def _ask_screen(self, key: str) -> None:
        self.post_message(self.ScreenKey(key))

    def submit(self) -> None:
        if self.menu_open:
            self.post_message(self.MenuKey("submit"))
            return
        if self.line_before_cursor().endswith("\\") and self.cursor_at_end_of_line:
            self.action_delete_left()
            self._new_line()
            return
        text = self.text
        if text.strip():
            self.set_text("")
            self.post_message(self.Submitted(text))

    def _new_line(self) -> None:
        self._type("\n")

    def _up(self) -> None:
        if self.menu_open:
            self.post_message(self.MenuKey("up"))
        elif self.cursor_at_first_line and (entry := self._history.older(self.text)) is not None:
            self.set_text(entry)
        elif not self.cursor_at_first_line:
            self.action_cursor_up()

    def _down(self) -> None:
        if self.menu_open:
            self.post_message(self.MenuKey("down"))
        elif self.cursor_at_last_line and (entry := self._history.newer()) is not None:
            self.set_text(entry)
        elif not self.cursor_at_last_line:
            self.action_cursor_down()

    def _complete(self) -> None:
        if self.menu_open:
            self.post_message(self.MenuKey("accept"))
        elif self.text.strip() and not self.leaves_by_tab:
            self._type("    ")
        else:
            self._ask_screen("tab")

    async def _on_paste(self, event: events.Paste) -> None:
        """Insert pasted text as it is: line ends of any kind become newlines."""
        event.prevent_default()
        event.stop()
        self._type(event.text.replace("\r\n", "\n").replace("\r", "\n"))

    def _type(self, text: str) -> None:
        """Insert text at the cursor, in place of the selection."""
        self.replace(text, *self.selection, maintain_selection_offset=False)
        self.scroll_cursor_visible()
