"""Terminal interface of a conversation: the application, its themes and its options."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from textual.app import App
from textual.binding import Binding
from textual.events import Resize
from textual.geometry import Size

from hermes.domain.values import dataclass
from hermes.tui.chat import preferences
from hermes.tui.chat.chat_screen import ChatScreen
from hermes.tui.chat.daemon import ChatDaemon, SocketDaemon
from hermes.tui.chat.input_history import FILE, InputHistory
from hermes.tui.chat.process_actions import ProcessActions
from hermes.tui.chat.session_link import SessionLink
from hermes.tui.chat.session_lists import SessionLists
from hermes.tui.themes import DARK, THEMES
from hermes.tui.widgets.dialogs import ChoiceScreen


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    data_dir: Path
    session: str
    workdir: str | None = None
    ask_directory: Path | None = None  # the person is asked whether the agent may work there
    yolo: bool = False
    find: str = ""  # words that several sessions match: the person chooses one of them first
    own_daemon: bool = False  # it ends with the chat
    revive: Callable[[], object] | None = None  # starts the own daemon again; blocks
    daemon_problem: Callable[[], str] = str  # why the own daemon has ended; empty while it runs


class ChatApp(App[None]):
    TITLE = "Hermes"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Toast { max-width: 60; }
    OptionList:nocolor > .option-list--option-highlighted { text-style: bold underline; }
    ToolBlock:nocolor:focus > .head { text-style: bold underline; }
    """
    BINDINGS = [Binding("ctrl+q", "quit", show=False, priority=True)]  # noqa: RUF012 - as Textual declares it

    def __init__(self, options: ChatOptions, daemon: ChatDaemon | None = None) -> None:
        # With ANSI colours, Textual leaves all of them out under NO_COLOR; else it would paint shades of grey.
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.options = options
        self._daemon = daemon or SocketDaemon(options.data_dir / "hermes.sock")
        self.link = SessionLink(self._daemon, options.session, workdir=options.workdir, own_daemon=options.own_daemon)
        self.history = InputHistory(options.data_dir / FILE)
        self.said = False  # a message was sent
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = DARK

    def on_mount(self) -> None:
        processes = ProcessActions(self, self._daemon, self.link)
        self.push_screen(ChatScreen(self.link, SessionLists(self._daemon), processes, self.history, self.options))
        self.call_after_refresh(self._begin)

    async def _begin(self) -> None:
        """Connect, now that the first screen is painted."""
        self.link.start()
        theme = await asyncio.to_thread(preferences.read_theme, self.options.data_dir)
        if theme in self.available_themes:
            self.theme = theme
        await asyncio.to_thread(self.history.load)

    def check_size(self) -> None:
        """Adapt the screen to the terminal. The signal of a resize can get lost under load."""
        if self.is_headless:
            return
        with suppress(OSError, ValueError):  # no terminal any more
            size = Size(*os.get_terminal_size(sys.__stdin__.fileno()))  # type: ignore[union-attr]
            if size != self.screen.size:
                self.screen.post_message(Resize(size, size))

    # ------------------------------------------------------------ themes

    def next_theme(self) -> str:
        """Return the name of the theme after the current one; Textual's own themes are in `/theme`."""
        names = [theme.name for theme in THEMES]
        at = names.index(self.theme) if self.theme in names else -1
        return names[(at + 1) % len(names)]

    async def ask_theme(self) -> None:
        ours = [theme.name for theme in THEMES]
        names = {name: name for name in (*ours, *sorted(self.available_themes))}
        chosen = await self.push_screen_wait(ChoiceScreen("Theme", names, self.theme))
        if chosen is not None:
            await self.choose_theme(chosen)

    async def choose_theme(self, theme: str) -> None:
        if theme not in self.available_themes:
            self.link.notice(f"There is no theme {theme}; /theme lists them.")
            return
        self.theme = theme
        self.notify(f"Theme {theme}")
        await asyncio.to_thread(preferences.write_theme, self.options.data_dir, theme)

    async def on_unmount(self) -> None:
        await self.link.close()
