"""Menu for an approval or a question of the turn: arrow keys and Enter, or the first letter of a choice."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from hermes.tui.view_model import OpenPrompt
from hermes.tui.widgets.plain_text import one_line, printable

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

_MEANINGS: Final = {
    "once": "allow this call",
    "session": "allow this kind of call in this session",
    "always": "allow this kind of call in all sessions",
    "deny": "do not run it",
    "show": "show it whole",
}
_GUARD_S: Final = 0.5  # after it took the focus by itself
_WORDS: Final = {"y": "once", "n": "deny"}


class QuestionMenu(Vertical):
    DEFAULT_CSS = """
    QuestionMenu { height: auto; max-height: 60%; display: none; background: $panel; border-left: outer $warning; }
    QuestionMenu.open { display: block; }
    QuestionMenu > VerticalScroll { height: auto; max-height: 12; padding: 0 1; }
    QuestionMenu > VerticalScroll > Static { height: auto; }
    QuestionMenu > OptionList {
        height: auto; max-height: 8; border: none; background: $panel; padding: 0 1; scrollbar-size-vertical: 1;
    }
    QuestionMenu > .hint { height: 1; padding: 0 1; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab,escape", "leave", "back to the editor", priority=True)]

    class Answered(Message):
        def __init__(self, prompt: OpenPrompt, answer: str) -> None:
            super().__init__()
            self.prompt = prompt
            self.answer = answer

    class Left(Message):
        """The person goes back to the editor; the question stays open. `typed`: a key that belongs there."""

        def __init__(self, typed: str = "") -> None:
            super().__init__()
            self.typed = typed

    def __init__(self) -> None:
        super().__init__(id="question")
        self.prompt: OpenPrompt | None = None
        self._was_left = False  # by the person, since this question is open
        self._taken_at = -_GUARD_S  # when it took the focus by itself
        self._text = Static(markup=False)
        self._options = OptionList(markup=False, compact=True)
        self._hint = Static(classes="hint", markup=False)

    def compose(self) -> ComposeResult:
        with VerticalScroll(can_focus=False):
            yield self._text
        yield self._options
        yield self._hint

    def show(self, prompt: OpenPrompt | None) -> None:
        if prompt == self.prompt:
            return
        self.prompt, self._was_left = prompt, False
        self.set_class(prompt is not None, "open")
        self._options.clear_options()
        if prompt is None:
            return
        title = (
            f"{one_line(prompt.name) or 'A tool call'} needs your approval" if prompt.approval else "The agent asks"
        )
        self._text.update(Text.assemble((f"{title}\n", "bold"), printable(prompt.question)))
        for number, choice in enumerate(prompt.choices, 1):
            key = choice[:1] if prompt.approval else str(number)
            meaning = _MEANINGS.get(choice, "") if prompt.approval else ""
            self._options.add_option(Option(f"[{key}] {printable(choice)}  {meaning}".rstrip()))
        self._options.display = bool(prompt.choices)
        if prompt.choices:
            self._options.highlighted = 0
        self._draw_hint()

    def focus_options(self) -> None:
        if self.prompt is not None and self.prompt.choices:
            self._options.focus()

    @property
    def wants_focus(self) -> bool:
        """Return whether a question with choices is open, and the person has not left it."""
        return bool(self.prompt and self.prompt.choices) and not self._was_left and not self.has_focus_within

    def take_focus(self) -> None:
        """Take the focus without being asked: keys of the next moment still belong to the editor."""
        self._taken_at = time.monotonic()
        self.focus_options()

    def on_descendant_focus(self) -> None:
        self._draw_hint()

    def on_descendant_blur(self) -> None:
        self._draw_hint()

    def _draw_hint(self) -> None:
        if self.prompt is not None:
            self._hint.update(_hint_of(self.prompt, focused=self.has_focus_within))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if self.prompt is not None and not self.is_guarded:
            self._answer(self.prompt.choices[event.option_index])

    def on_key(self, event: events.Key) -> None:
        if self.prompt is None or event.character is None or not event.is_printable:
            return
        if self.is_guarded:
            event.stop()
            self._was_left = True
            self.post_message(self.Left(event.character))
            return
        answer = choice_of(self.prompt, event.character.lower())
        if answer:
            event.stop()
            self._answer(answer)

    @property
    def is_guarded(self) -> bool:
        """Return whether keys still belong to the editor."""
        return time.monotonic() - self._taken_at < _GUARD_S

    def action_leave(self) -> None:
        self._was_left = True
        self.post_message(self.Left())

    def _answer(self, answer: str) -> None:
        if self.prompt is not None:
            self.post_message(self.Answered(self.prompt, answer))


def _hint_of(prompt: OpenPrompt, *, focused: bool) -> str:
    if not prompt.choices:
        return "Type an answer below"
    key = "letter" if prompt.approval else "number"
    if focused:
        return f"A {key}, or arrow keys and Enter; Tab: back to the editor"
    other = "or type /approve or /deny" if prompt.approval else "or type an answer below"
    return f"Tab: answer with a {key}; {other}"


def choice_of(prompt: OpenPrompt, key: str) -> str:
    """Return the choice that a key stands for; empty if there is none."""
    if not prompt.approval:
        number = int(key) if key.isdecimal() else 0
        return prompt.choices[number - 1] if 1 <= number <= len(prompt.choices) else ""
    key = _WORDS.get(key, key)
    return next((each for each in prompt.choices if each.startswith(key)), "")
