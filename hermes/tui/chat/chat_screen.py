"""Main screen of the terminal interface: conversation, menus, editor and status lines."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Markdown

from hermes.config.trust import remember_answer
from hermes.domain.errors import HermesError
from hermes.tui.chat import completion
from hermes.tui.chat.external_editor import edited
from hermes.tui.chat.figures import LinkState
from hermes.tui.chat.picture_files import named_in
from hermes.tui.chat.slash_commands import SlashCommands
from hermes.tui.view_model import ChatView
from hermes.tui.widgets.dialogs import ChoiceScreen, HelpScreen, SessionPicker
from hermes.tui.widgets.editor import PromptEditor
from hermes.tui.widgets.input_area import InputArea
from hermes.tui.widgets.plain_text import one_line
from hermes.tui.widgets.question_menu import QuestionMenu
from hermes.tui.widgets.side_bar import SideBar
from hermes.tui.widgets.status_bar import (
    ActivityLine,
    FigureLine,
    PendingLines,
    connection_text,
    doing_of,
    figure_text,
    state_of,
)
from hermes.tui.widgets.transcript import TranscriptView
from hermes.tui.widgets.welcome import Greeting, Welcome, recent_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from hermes.tui.chat.app import ChatApp, ChatOptions
    from hermes.tui.chat.input_history import InputHistory
    from hermes.tui.chat.process_actions import ProcessActions
    from hermes.tui.chat.session_link import SessionLink
    from hermes.tui.chat.session_lists import SessionLists

_REDRAW_S: Final = 0.05  # between two updates of the conversation
_TICK_S: Final = 0.125
_SIDE_BAR_COLUMNS: Final = 100  # of the screen, from which the side bar opens by itself
_BOTH_COLUMNS: Final = 70  # from which the side bar is beside the conversation; else in its place
_QUIET_S: Final = 1.0  # without a key, before a question takes the focus
_AGAIN_S: Final = 2.0  # within which a second Ctrl-C exits
_REFRESH_S: Final = 5.0
_REVIVE_S: Final = 3.0
_LONG_S: Final = 15.0  # for a notice that names something to type
_RECENT: Final = 3  # conversations in the greeting
_GREETING_ROWS: Final = 20  # of the screen


class ChatScreen(Screen[None]):
    CSS = """
    ChatScreen { layers: base; }
    #body { height: 1fr; }
    #main { width: 1fr; height: 1fr; }
    #main.beside { display: none; }
    #conversation { height: 1fr; overflow: hidden; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "interrupt", "stop", priority=True),
        Binding("ctrl+c", "cancel", "cancel"),
        Binding("ctrl+d", "end_of_input", "exit"),
        Binding("ctrl+r", "sessions", "sessions", priority=True),
        Binding("ctrl+g", "external_editor", "$EDITOR", priority=True),
        Binding("ctrl+o", "fold_all", "fold", priority=True),
        Binding("ctrl+b", "side_bar", "processes", priority=True),
        Binding("ctrl+t", "next_theme", "theme", priority=True),
        Binding("pageup", "scroll(-1)", show=False, priority=True),
        Binding("pagedown", "scroll(1)", show=False, priority=True),
        Binding("ctrl+end", "scroll_end", show=False, priority=True),
        Binding("f1", "help", "help", priority=True),
    ]
    AUTO_FOCUS = "#editor"

    app: ChatApp

    def __init__(
        self,
        link: SessionLink,
        lists: SessionLists,
        processes: ProcessActions,
        history: InputHistory,
        options: ChatOptions,
    ) -> None:
        super().__init__()
        self._processes = processes
        self._link = link
        self._history = history
        self._options = options
        self._lists = lists
        self._commands = SlashCommands(self, link, lists)
        self._sessions: Sequence[Mapping[str, Any]] = ()
        self._recent: Sequence[Mapping[str, Any]] = ()
        self._find = options.find
        self._wants_side_bar: bool | None = None
        self._drawing = False
        self._last_key = self._last_cancel = self._revived = 0.0
        self._was_online = False
        link.on_change(self._changed)

    def compose(self) -> ComposeResult:
        with Horizontal(id="body"):
            with Vertical(id="main"):
                with Vertical(id="conversation"):
                    yield Welcome()
                    yield TranscriptView(self._options.data_dir / "media")
                yield PendingLines(markup=False)
                yield QuestionMenu()
                yield ActivityLine()
                yield InputArea(self._history, self._known_sessions, self.directory)
            yield SideBar()
        yield FigureLine(markup=False)

    def on_mount(self) -> None:
        self.set_interval(_TICK_S, self._tick)
        self.set_interval(_REFRESH_S, self._refresh_processes)
        self._draw_status()
        if self._options.ask_directory is not None:
            self.run_worker(self._ask_directory(self._options.ask_directory))

    # ------------------------------------------------------------ drawing

    def _changed(self) -> None:
        """Draw soon; changes until then are drawn together."""
        if not self._drawing and self.is_mounted:
            self._drawing = True
            self.set_timer(_REDRAW_S, self._draw)

    async def _draw(self) -> None:
        self._drawing = False
        view = self._link.view
        await self.query_one(TranscriptView).show(view.blocks, has_earlier=view.earliest is not None)
        self.query_one(PendingLines).show(view.pending)
        self.query_one(Welcome).show(None if view.blocks or view.pending else self._greeting())
        self._draw_question(view)
        self._draw_side_bar()
        self._draw_status()
        if self._link.refused and not self._editor.text:
            self._editor.set_text(self._link.refused)
            self._link.refused = ""
        online = self._link.connection is LinkState.ONLINE
        if online and not self._was_online:
            self.run_worker(self._load_commands())
            self.run_worker(self._load_recent())
            if find := self._find:
                self._find = ""
                self.run_worker(self.action_sessions(find))
        self._was_online = online

    def _greeting(self) -> Greeting | None:
        """Return the greeting of an empty conversation; None before the daemon has answered, or without room."""
        model = self._link.figures.model
        if not model or self.size.height < _GREETING_ROWS:
            return None
        recent = recent_of(self._recent, time.time())
        return Greeting(model=model, directory=self._link.workdir or "", recent=recent)

    def _draw_question(self, view: ChatView) -> None:
        menu = self.query_one(QuestionMenu)
        if view.prompt == menu.prompt:
            return
        had_focus = menu.has_focus_within
        menu.show(view.prompt)
        self._editor.leaves_by_tab = view.prompt is not None and bool(view.prompt.choices)
        if view.prompt is None:
            if had_focus:
                self._editor.focus()
        elif view.prompt.approval and self._options.yolo:
            self.run_worker(self._answer(view.prompt, "once"))
        else:
            self._offer_focus()

    def _offer_focus(self) -> None:
        """Move the focus to an open question, once no key was pressed for a while.

        A key that was meant for the editor must not answer. A person who left the question is not called back.
        """
        menu = self.query_one(QuestionMenu)
        is_quiet = time.monotonic() - self._last_key > _QUIET_S
        if menu.wants_focus and is_quiet and self.focused is self._editor and not self._editor.text:
            menu.take_focus()

    def _draw_side_bar(self) -> None:
        bar, figures = self.query_one(SideBar), self._link.figures
        bar.show(figures.processes, figures.agents)
        by_itself = self._has_work_beside() and self.size.width >= _SIDE_BAR_COLUMNS
        is_open = by_itself if self._wants_side_bar is None else self._wants_side_bar
        is_whole = is_open and self.size.width < _BOTH_COLUMNS
        bar.set_class(is_open, "open")
        bar.set_class(is_whole, "whole")
        self.query_one("#main").set_class(is_whole, "beside")

    def on_resize(self) -> None:
        self._changed()

    def _draw_status(self) -> None:
        link, own = self._link, self._options.own_daemon
        ended = "" if link.connection is LinkState.ONLINE else self._options.daemon_problem()
        away = connection_text(link.connection, own=own, problem=link.problem, ended=ended)
        self.query_one(ActivityLine).show(doing_of(link.view), away)
        state = state_of(link.view, link.connection)
        session, width = link.view.session, self.size.width - 2
        figures = figure_text(link.figures, state=state, session=session, own=own, width=width)
        self.query_one(FigureLine).show(figures)

    def _tick(self) -> None:
        self.app.check_size()
        if self._link.view.turn or self._link.connection is not LinkState.ONLINE:
            self.query_one(TranscriptView).tick()
            self._draw_status()
            self._offer_focus()
        now = time.monotonic()
        if (
            self._options.revive is not None
            and self._link.connection is LinkState.AWAY
            and now - self._revived > _REVIVE_S
        ):
            self._revived = now
            self.run_worker(asyncio.to_thread(self._options.revive))

    def _has_work_beside(self) -> bool:
        """Return whether background processes or subagents run."""
        figures = self._link.figures
        return bool(figures.agents) or any(each["running"] for each in figures.processes)

    def _refresh_processes(self) -> None:
        if self._has_work_beside() or self._link.view.turn:
            self.run_worker(self._link.refresh(), exclusive=True, group="refresh")

    # ------------------------------------------------------------ editor

    @property
    def _editor(self) -> PromptEditor:
        return self.query_one(PromptEditor)

    @property
    def _input(self) -> InputArea:
        return self.query_one(InputArea)

    def directory(self) -> Path:
        return Path(self._link.workdir or self._options.ask_directory or Path.home())

    async def _known_sessions(self) -> Sequence[Mapping[str, Any]]:
        if not self._sessions:
            with suppress(HermesError):  # no daemon, no candidates
                self._sessions = await self._lists.sessions()
        return self._sessions

    def on_key(self) -> None:
        self._last_key = time.monotonic()

    def on_text_area_changed(self) -> None:
        self._last_key = time.monotonic()

    async def on_prompt_editor_submitted(self, event: PromptEditor.Submitted) -> None:
        await self._take(event.text)

    async def on_prompt_editor_screen_key(self, event: PromptEditor.ScreenKey) -> None:
        match event.key:
            case "ctrl+c":
                self.action_cancel()
            case "ctrl+d":
                self.action_end_of_input()
            case "ctrl+n":
                await self._send_now()
            case "tab" if self._link.view.prompt is not None:
                self.query_one(QuestionMenu).focus_options()
            case "tab":
                self.focus_next()
            case _:
                await self._steer()

    async def _take(self, text: str) -> None:
        """Run a command or send a message."""
        if self._history.add(text):
            self.run_worker(asyncio.to_thread(self._history.store, text))
        self._input.close_menu()
        self.query_one(TranscriptView).anchor()
        said = text.strip()
        if completion.is_command(said):
            await self._commands.run(said)
        else:
            self.app.said = True
            pictures = await asyncio.to_thread(named_in, text, self.directory()) if "@" in text else ()
            self._link.send(text.strip("\n"), pictures)

    async def _load_commands(self) -> None:
        with suppress(HermesError):  # the next connection loads them
            self._input.commands = await self._commands.listed()

    async def _load_recent(self) -> None:
        """Load the last conversations for the greeting."""
        if not self._link.view.blocks:
            with suppress(HermesError):
                self._recent = await self._lists.sessions(_RECENT)
                self._changed()

    # ------------------------------------------------------------ questions

    async def on_question_menu_answered(self, event: QuestionMenu.Answered) -> None:
        self._editor.focus()
        self.run_worker(self._answer(event.prompt, event.answer))

    def on_question_menu_left(self, event: QuestionMenu.Left) -> None:
        self._editor.focus()
        if event.typed:
            self._editor.insert(event.typed)

    async def _answer(self, prompt: Any, answer: str) -> None:
        try:
            await self._link.answer(prompt, answer)
        except HermesError as error:
            self._link.notice(f"The answer was not taken: {error}")

    async def _ask_directory(self, directory: Path) -> None:
        choices = {"yes": f"Yes, work in {directory}", "no": "No, work in the default directory"}
        answer = await self.app.push_screen_wait(
            ChoiceScreen(f"Let the agent work in {directory}? (y or n, then Enter; Esc: ask again later)", choices)
        )
        if answer is not None:
            await asyncio.to_thread(remember_answer, self._options.data_dir, directory, trusted=answer == "yes")
        if answer == "yes":
            self._link.workdir = str(directory)

    # ------------------------------------------------------------ actions

    def action_interrupt(self) -> None:
        if self._editor.menu_open:
            self._input.close_menu()
        elif self.focused is not self._editor:
            self._editor.focus()
        elif self._link.view.turn:
            self.run_worker(self._link.stop_turn())

    def action_cancel(self) -> None:
        if selected := self.get_selected_text() or self._editor.selected_text:
            self.copy(selected, "Copied.")
            return
        if self._editor.text:
            self._history.add(self._editor.text)
            self._editor.set_text("")
            return
        now = time.monotonic()
        if now - self._last_cancel < _AGAIN_S:
            self.app.exit()
            return
        self._last_cancel = now
        if self._link.view.turn:
            self.run_worker(self._link.stop_turn())
        self.notify("Ctrl-C again exits; the session is kept.")

    def action_end_of_input(self) -> None:
        if self._editor.text:
            self._editor.action_delete_right()
        else:
            self.app.exit()

    async def _send_now(self) -> None:
        """Stop the answer, and send the typed message instead."""
        text = self._editor.text
        if not text.strip():
            return
        self._editor.set_text("")
        await self._link.stop_turn()
        await self._take(text)

    async def _steer(self) -> None:
        text = self._editor.text.strip()
        if not text:
            return
        self._editor.set_text("")
        await self._take(f"/steer {text}" if self._link.view.turn else text)

    async def action_sessions(self, words: str = "") -> None:
        try:
            self._sessions = await self._lists.sessions()
        except HermesError as error:
            self.notify(one_line(str(error)), markup=False)
            return
        self.app.push_screen(SessionPicker(self._sessions, self._lists.search, words), self._open)

    def _open(self, session: str | None) -> None:
        if session is not None:
            self._link.open(session)

    def action_external_editor(self) -> None:
        with self.app.suspend():
            text = edited(self._editor.text)
        if text is None:
            self.notify("The editor failed; the text is unchanged.", severity="warning")
        else:
            self._editor.set_text(text)
        self.refresh(layout=True)

    def action_fold_all(self) -> None:
        self.query_one(TranscriptView).fold_all()

    def action_side_bar(self) -> None:
        """Open the side bar, or move into it; a second time close it."""
        bar = self.query_one(SideBar)
        self._wants_side_bar = not (bar.has_class("open") and (bar.has_focus_within or bar.is_empty))
        self._draw_side_bar()
        (bar.focus_list if self._wants_side_bar else self._editor.focus)()
        self.run_worker(self._link.refresh(), exclusive=True, group="refresh")

    def on_side_bar_opened(self, event: SideBar.Opened) -> None:
        if event.is_agent:
            back = f"This is a subagent. /resume {self._link.view.session} leads back."
            self._open(event.id)
            self.notify(back, markup=False, timeout=_LONG_S)
        else:
            self.run_worker(self._processes.show(event.row))

    def on_side_bar_end_wanted(self, event: SideBar.EndWanted) -> None:
        event.stop()
        self.run_worker((self._processes.end_agent if event.is_agent else self._processes.end)(event.row))

    def action_scroll(self, pages: int) -> None:
        transcript = self.query_one(TranscriptView)
        if pages > 0:
            transcript.scroll_page_down(animate=False)
        elif transcript.scroll_y > 0:
            transcript.scroll_page_up(animate=False)
        else:
            transcript.want_earlier()

    def action_scroll_end(self) -> None:
        self.query_one(TranscriptView).anchor()

    def on_transcript_view_earlier_wanted(self) -> None:
        self.run_worker(self._load_earlier())

    async def _load_earlier(self) -> None:
        await self._link.load_earlier()
        view = self._link.view
        await self.query_one(TranscriptView).show_earlier(view.blocks, has_earlier=view.earliest is not None)

    def action_help(self) -> None:
        self.app.push_screen(HelpScreen(self._input.commands))

    async def action_next_theme(self) -> None:
        await self.app.choose_theme(self.app.next_theme())

    def copy(self, text: str, done: str) -> None:
        self.app.copy_to_clipboard(text)
        self.notify(done, markup=False)

    def on_markdown_link_clicked(self, event: Markdown.LinkClicked) -> None:
        self.copy(event.href, f"Copied {event.href}")
