"""Dialogs of the live view: confirm a step, answer what a session waits for, list the keys."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from hermes.tui.top.source import Pending

_STYLE = """
{name} {{ align: center middle; }}
{name} > Vertical {{ width: 76; max-width: 100%; height: auto; max-height: 100%; border: round $primary; padding: 0 1;
    background: $surface; }}
{name} VerticalScroll {{ height: auto; max-height: 12; }}
{name} OptionList {{ height: auto; max-height: 8; border: none; }}
"""


class AnswerDialog(ModalScreen[str]):
    """Returns the answer; empty if there is none."""

    DEFAULT_CSS = _STYLE.format(name="AnswerDialog")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Cancel")]

    def __init__(self, pending: Pending) -> None:
        super().__init__()
        self._pending = pending

    def compose(self) -> ComposeResult:
        pending = self._pending
        with Vertical():
            with VerticalScroll():
                yield Static(pending.question, markup=False)
            if pending.choices:
                yield OptionList(*(Option(each) for each in pending.choices))
            if not pending.approval:
                yield Input(placeholder="the answer; Enter sends it, Escape leaves")

    def on_mount(self) -> None:
        (self.query("OptionList").first() if self._pending.choices else self.query_one(Input)).focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._pending.choices[event.option_index])

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())

    def action_leave(self) -> None:
        self.dismiss("")


class KeyList(ModalScreen[None]):
    DEFAULT_CSS = _STYLE.format(name="KeyList")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,enter", "leave", "Close")]
    TEXT = """\
1 2 3 4   sessions, actors, processes, platforms
Up Down   choose a row; Enter opens the session of the row
/         filter by words; Escape clears the filter
o         change the order: state, age, mail, tokens, cost, active
b         only sessions with open work
f         follow the session live
x         stop the turn of the session, or kill the process
a         approve, deny or answer what the session waits for
p         pause the display
q         quit

MAIL counts messages in the mailbox and queued messages. FOR is the
age of the current model call or tool call, or of a wait."""

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self.TEXT, markup=False)

    def action_leave(self) -> None:
        self.dismiss(None)
