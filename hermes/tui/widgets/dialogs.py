"""Dialogs of the terminal interface: help, choice of a session or a theme, trust of a directory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.text import Text
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from hermes.domain.errors import HermesError
from hermes.tui.chat.completion import matches
from hermes.tui.chat.keys import KEYS
from hermes.tui.widgets.plain_text import age, one_line

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.events import Key

_SEARCH_AFTER_S: Final = 0.25  # of silence
_SEARCHED_CHARS: Final = 3
_PAUSE_S: Final = 0.7  # before a letter that chooses
_CSS: Final = """
{name} {{ align: center middle; }}
{name} > Vertical {{
    width: 90%; max-width: 100; height: auto; max-height: 90%; padding: 0 1;
    background: $panel; border: round $primary;
}}
{name} OptionList {{ height: auto; max-height: 20; border: none; background: $panel; scrollbar-size-vertical: 1;
    text-wrap: nowrap; text-overflow: ellipsis; }}
{name} Input {{ border: none; height: 1; padding: 0; background: $surface; margin: 0 0 1 0; }}
{name} .title {{ text-style: bold; height: auto; margin: 0 0 1 0; }}
"""


class HelpScreen(ModalScreen[None]):
    DEFAULT_CSS = _CSS.format(name="HelpScreen")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f1,q,enter", "dismiss", "close")]

    def __init__(self, commands: Sequence[Mapping[str, Any]]) -> None:
        super().__init__()
        self._commands = commands

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static("Keys and commands (Esc closes)", classes="title")
            with VerticalScroll():
                yield Static(_help_text(self._commands), markup=False)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()


def _help_text(commands: Sequence[Mapping[str, Any]]) -> Text:
    text = Text()
    for key, what in KEYS:
        text.append(f"{key}\n", "bold")
        text.append(f"    {what}\n")
    text.append("\n@path names a file; a message that begins with a slash and a word is a command:\n")
    for command in commands:
        text.append(f"\n/{command['name']}", "bold")
        text.append(f"  {command.get('help') or ''}")
    return text


class ChoiceScreen(ModalScreen[str | None]):
    """Choice of one of several values, by arrow keys or first letters, and Enter.

    None is chosen at first, so that a stray Enter decides nothing. Letters of a message that a person types meanwhile
    choose nothing either: a letter counts by itself, after a pause.
    """

    DEFAULT_CSS = _CSS.format(name="ChoiceScreen")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "close")]

    def __init__(self, title: str, choices: Mapping[str, str], chosen: str = "") -> None:
        super().__init__()
        self._title = title
        self._choices = choices
        self._chosen = chosen
        self._letter_at = 0.0

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._title, classes="title", markup=False)
            yield OptionList(
                *(Option(text, id=name) for name, text in self._choices.items()), markup=False, compact=True
            )

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.focus()
        options.highlighted = [*self._choices].index(self._chosen) if self._chosen in self._choices else None

    def on_key(self, event: Key) -> None:
        """Move to the next choice that begins with a letter."""
        if event.character is None or not event.character.isprintable():
            return
        options = self.query_one(OptionList)
        is_typing, self._letter_at = event.time - self._letter_at < _PAUSE_S, event.time
        if is_typing:
            options.highlighted = None
            return
        at = -1 if options.highlighted is None else options.highlighted
        texts = [text.casefold() for text in self._choices.values()]
        order = [*range(at + 1, len(texts)), *range(at + 1)]
        found = next((each for each in order if texts[each].startswith(event.character.casefold())), None)
        if found is not None:
            options.highlighted = found

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)


class SessionPicker(ModalScreen[str | None]):
    """List of sessions, filtered by title and id; words are also searched in all messages."""

    DEFAULT_CSS = _CSS.format(name="SessionPicker")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+r", "dismiss(None)", "close"),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("up", "move(-1)", show=False, priority=True),
    ]

    def __init__(
        self,
        sessions: Sequence[Mapping[str, Any]],
        search: Callable[[str], Awaitable[list[Mapping[str, Any]]]],
        words: str = "",
    ) -> None:
        super().__init__()
        self._words = words
        self._sessions = sessions
        self._search = search

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static("Sessions: type to search, Enter opens, Esc closes", classes="title", markup=False)
            yield Input(self._words, placeholder="title, id or words of a message", compact=True)
            yield OptionList(markup=False, compact=True)

    def on_mount(self) -> None:
        self._list([each for each in self._sessions if matches(each, self._words)], [])
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        words = event.value.strip()
        self._list([each for each in self._sessions if matches(each, words)], [])
        self.run_worker(self._find(words), exclusive=True)

    async def _find(self, words: str) -> None:
        if len(words) < _SEARCHED_CHARS:
            return
        await asyncio.sleep(_SEARCH_AFTER_S)
        try:
            hits = await self._search(words)
        except HermesError as error:
            self.notify(one_line(str(error)), markup=False)
            return
        self._list([each for each in self._sessions if matches(each, words)], hits, keep=True)

    def _list(
        self, sessions: Sequence[Mapping[str, Any]], hits: Sequence[Mapping[str, Any]], *, keep: bool = False
    ) -> None:
        """Fill the list. `keep`: the person's choice stays, since the words are the same."""
        options = self.query_one(OptionList)
        chosen = options.highlighted_option.id if keep and options.highlighted_option is not None else None
        options.clear_options()
        now = time.time()
        rows = {str(each["id"]): _session_row(each, now) for each in sessions}
        for hit in hits:
            rows.setdefault(str(hit["session_id"]), _hit_row(hit))
        options.add_options(Option(row, id=session) for session, row in rows.items())
        if rows:
            options.highlighted = list(rows).index(chosen) if chosen in rows else 0

    def action_move(self, rows: int) -> None:
        options = self.query_one(OptionList)
        (options.action_cursor_down if rows > 0 else options.action_cursor_up)()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        options = self.query_one(OptionList)
        if options.highlighted is not None:
            self.dismiss(options.get_option_at_index(options.highlighted).id)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)


def _session_row(session: Mapping[str, Any], now: float) -> Text:
    row = Text()
    row.append(f"{age(now - float(session.get('active_at') or now)):>6}  ", "dim")
    row.append(one_line(str(session.get("title") or session.get("preview") or "no title"), 60), "bold")
    phase = str(session.get("phase") or "idle").replace("_", " ")
    row.append(f"  {'' if phase == 'idle' else phase + ', '}{session['id']}", "dim")
    return row


def _hit_row(hit: Mapping[str, Any]) -> Text:
    row = Text()
    row.append(f"{'':>6}  … {one_line(str(hit.get('snippet') or ''), 80)}")
    row.append(f"  {hit['session_id']}", "dim")
    return row
