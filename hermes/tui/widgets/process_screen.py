"""Dialog of one background process: its command, its state and the end of its output, refreshed while it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from hermes.domain.errors import HermesError
from hermes.tui.widgets.plain_text import one_line, printable
from hermes.tui.widgets.side_bar import process_state

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

_REFRESH_S: Final = 1.0


class ProcessScreen(ModalScreen[bool]):
    """Returns whether the person wants to end the process."""

    DEFAULT_CSS = """
    ProcessScreen { align: center middle; }
    ProcessScreen > Vertical {
        width: 95%; height: 90%; padding: 0 1; background: $panel; border: round $primary;
    }
    ProcessScreen .title { height: auto; max-height: 4; text-style: bold; }
    ProcessScreen .state { height: 1; color: $text-muted; margin: 0 0 1 0; }
    ProcessScreen VerticalScroll { height: 1fr; scrollbar-size-vertical: 1; }
    ProcessScreen .hint { height: 1; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(False)", "close"),
        Binding("x", "dismiss(True)", "end"),
        Binding("c", "copy", "copy"),
    ]

    def __init__(
        self,
        process: Callable[[], Mapping[str, Any]],
        output: Callable[[], Awaitable[tuple[str, bool]]],
    ) -> None:
        """`process` returns its description of the moment."""
        super().__init__()
        self._process = process
        self._read = output
        self._output = ""
        self._state = Static(classes="state", markup=False)
        self._text = Static("…", markup=False)
        self._scroll = VerticalScroll(self._text)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(one_line(str(self._process()["command"]), 300), classes="title", markup=False)
            yield self._state
            yield self._scroll
            yield Static("x: end it   c: copy the output   Esc: close", classes="hint", markup=False)

    async def on_mount(self) -> None:
        self._scroll.anchor()
        self._scroll.focus()
        self.set_interval(_REFRESH_S, self._refresh_output)
        await self._refresh_output()

    async def _refresh_output(self) -> None:
        self._state.update(process_state(self._process()))
        try:
            output, is_cut = await self._read()
        except HermesError as error:
            self._text.update(one_line(str(error)))
            return
        if output != self._output or not output:
            self._output = output
            self._text.update(f"{'…' if is_cut else ''}{printable(output)}" or "no output yet")

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._output)
        self.notify("Copied the output.")
