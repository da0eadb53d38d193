"""Menu of completions above the editor, which keeps the focus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from hermes.tui.widgets.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.tui.chat.completion import Candidate


class CompletionMenu(OptionList, can_focus=False):
    DEFAULT_CSS = """
    CompletionMenu {
        height: auto; max-height: 9; border: none; background: $panel; display: none; padding: 0 1;
        scrollbar-size-vertical: 1;
    }
    CompletionMenu.open { display: block; }
    CompletionMenu > .option-list--option-highlighted { background: $primary; color: $background; text-style: bold; }
    """

    def __init__(self) -> None:
        super().__init__(id="completion", markup=False, compact=True)
        self._candidates: tuple[Candidate, ...] = ()

    @property
    def is_open(self) -> bool:
        return bool(self._candidates)

    @property
    def chosen(self) -> Candidate | None:
        if self.highlighted is None or not self._candidates:
            return None
        return self._candidates[self.highlighted]

    def show(self, candidates: Sequence[Candidate]) -> None:
        if tuple(candidates) == self._candidates:
            return
        self._candidates = tuple(candidates)
        self.set_class(self.is_open, "open")
        self.clear_options()
        width = min(30, max((len(each.text) for each in candidates), default=0))
        self.add_options(Option(_row(each, width)) for each in candidates)
        if candidates:
            self.highlighted = 0


def _row(candidate: Candidate, width: int) -> Text:
    about = (one_line(candidate.about), "dim")
    return Text.assemble(f"{one_line(candidate.text):<{width}}  ", about, no_wrap=True, overflow="ellipsis")
