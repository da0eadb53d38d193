"""Editor with its completion menu."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from textual.containers import Vertical

from hermes.tui.chat import completion
from hermes.tui.chat.keys import LOCAL_COMMANDS
from hermes.tui.widgets.completion_menu import CompletionMenu
from hermes.tui.widgets.editor import PromptEditor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from textual.app import ComposeResult

    from hermes.tui.chat.completion import Candidate
    from hermes.tui.chat.input_history import InputHistory


class InputArea(Vertical):
    DEFAULT_CSS = "InputArea { height: auto; }"

    def __init__(
        self,
        history: InputHistory,
        sessions: Callable[[], Awaitable[Sequence[Mapping[str, Any]]]],
        directory: Callable[[], Path],
    ) -> None:
        super().__init__()
        self.commands: Sequence[Mapping[str, Any]] = LOCAL_COMMANDS
        self._sessions = sessions
        self._directory = directory
        self._menu = CompletionMenu()
        self._editor = PromptEditor(history)

    def compose(self) -> ComposeResult:
        yield self._menu
        yield self._editor

    def close_menu(self) -> None:
        self._show(())

    async def on_text_area_changed(self) -> None:
        self._show(await self._candidates())

    async def _candidates(self) -> Sequence[Candidate]:
        editor = self._editor
        line = editor.line_before_cursor()
        if line.startswith("/") and editor.document.line_count == 1:
            if completion.wants_session(line):
                return completion.session_candidates(line, await self._sessions())
            return completion.command_candidates(line, self.commands)
        word = completion.file_word(line)
        if word is None:
            return ()
        return await asyncio.to_thread(completion.file_candidates, word.path, self._directory())

    def _show(self, candidates: Sequence[Candidate]) -> None:
        only = candidates[0].text if len(candidates) == 1 else ""
        done = only and self._editor.line_before_cursor().endswith(only)
        self._menu.show(() if done else candidates)
        self._editor.menu_open = self._menu.is_open

    def on_prompt_editor_menu_key(self, event: PromptEditor.MenuKey) -> None:
        event.stop()
        match event.key:
            case "up":
                self._menu.action_cursor_up()
            case "down":
                self._menu.action_cursor_down()
            case "submit" if self._menu.chosen is None or self._menu.chosen.text == self._editor.text:
                self.close_menu()
                self._editor.submit()
            case _:
                self._accept()

    def _accept(self) -> None:
        """Put the chosen completion in the place of what was typed."""
        editor, chosen = self._editor, self._menu.chosen
        if chosen is None:
            return
        row, column = editor.cursor_location
        word = completion.file_word(editor.line_before_cursor())
        start = word.start if word is not None else 0
        editor.replace(chosen.text, (row, start), (row, column), maintain_selection_offset=False)

    def on_option_list_option_selected(self) -> None:
        """Accept a completion by a click."""
        self._accept()
        self._editor.focus()
