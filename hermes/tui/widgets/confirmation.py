"""Dialog that asks for a yes or no."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType


class Confirmation(ModalScreen[bool]):
    DEFAULT_CSS = """
    Confirmation { align: center middle; }
    Confirmation > Vertical {
        width: 76; max-width: 100%; height: auto; max-height: 100%; border: round $primary; padding: 0 1;
        background: $surface;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,q", "answer(False)", "No"),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(f"{self._question}\n\ny: yes   n: no", markup=False)

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)
