"""The live view: a table of what runs, refreshed until the person quits. It survives restarts of the daemon."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Input, Static

from hermes.domain.errors import HermesError
from hermes.domain.values import replace
from hermes.tui.top import header
from hermes.tui.top.dialog import AnswerDialog, KeyList
from hermes.tui.top.sample import Sample
from hermes.tui.top.session_screen import SessionScreen
from hermes.tui.top.source import SORTS, LiveSource, SampleWish
from hermes.tui.top.table import Column, Tab, TableRow, chosen, fitted, rows_of
from hermes.tui.top.trend import Trends, with_sample
from hermes.tui.top.words import printable
from hermes.tui.widgets.confirmation import Confirmation

_ABOUTS_EACH = 10  # first messages read between two samples
_STYLES = {
    "running": "green",
    "waiting": "bold yellow",
    "resume_pending": "yellow",
    "connecting": "yellow",
    "silent": "yellow",
    "impaired": "yellow",
    "suspended": "red",
    "parked": "bold red",
    "down": "bold red",
    "idle": "dim",
}


class TopApp(App[None]):
    TITLE = "hermes top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #figures { height: 4; }
    #tabs { height: 1; text-style: bold; }
    DataTable { height: 1fr; scrollbar-size-vertical: 1; }
    #filter { display: none; height: 1; border: none; padding: 0; }
    #filter.open { display: block; }
    DataTable:nocolor > .datatable--cursor { text-style: bold reverse; }
    OptionList:nocolor > .option-list--option-highlighted { text-style: bold reverse; }
    FooterKey:nocolor .footer-key--key { text-style: bold underline; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("question_mark", "keys", "Keys", key_display="?"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("o", "order", "Order"),
        Binding("b", "busy", "Busy"),
        Binding("f", "follow", "Follow"),
        Binding("x", "stop", "Stop"),
        Binding("a", "answer", "Answer"),
        Binding("p", "pause", "Pause"),
        Binding("escape", "clear", "Clear", show=False),
        *(Binding(str(place), f"tab('{tab}')", tab, show=False) for place, tab in enumerate(Tab, 1)),
    ]

    def __init__(
        self, source: LiveSource, *, wish: SampleWish | None = None, every_s: float = 2.0, ascii_only: bool = False
    ) -> None:
        # With ANSI colours, Textual leaves all of them out under NO_COLOR; else it would paint shades of grey.
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self._source = source
        self._wish = wish or SampleWish()
        self._every_s = every_s
        self._ascii_only = ascii_only
        self._tab = Tab.SESSIONS
        self._trends = Trends()
        self._problem = ""
        self._is_paused = False
        self._abouts: dict[str, str] = {}  # first messages of sessions without a title
        self._columns: tuple[Column, ...] = ()
        self._drawn: list[str] = []  # keys of the rows on the screen
        self._wake = asyncio.Event()
        self._figures = Static("", id="figures", markup=False)
        self._tabs = Static("", id="tabs", markup=False)
        self._table = DataTable[Text](cursor_type="row", zebra_stripes=False)
        self._filter = Input(placeholder="words to find; Enter keeps the filter, Escape clears it", id="filter")

    def compose(self) -> ComposeResult:
        yield from (self._figures, self._tabs, self._table, self._filter)
        yield Footer()

    def on_mount(self) -> None:
        self._draw()
        self._table.focus()
        self._sample_forever()

    @property
    def sample(self) -> Sample | None:
        return self._trends.last

    # ------------------------------------------------------------ samples

    @work(exclusive=True, group="sample")
    async def _sample_forever(self) -> None:
        while True:
            self._wake.clear()
            if not self._is_paused:
                await self._take_sample()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every_s):
                    await self._wake.wait()

    async def _take_sample(self) -> None:
        try:
            sample = await asyncio.to_thread(self._source.sample, self._wish)
        except HermesError as error:
            self._problem = f"no answer: {printable(str(error))}"
        else:
            self._problem = ""
            self._trends = with_sample(self._trends, sample)
            await self._read_abouts(sample)
        self._draw()

    async def _read_abouts(self, sample: Sample) -> None:
        known = {each.id: self._abouts[each.id] for each in sample.sessions if each.id in self._abouts}
        unknown = [each.id for each in sample.sessions if not each.title and each.id not in known]
        for session in unknown[:_ABOUTS_EACH]:
            with suppress(HermesError):
                known[session] = " ".join((await asyncio.to_thread(self._source.beginning, session)).split())
        self._abouts = known

    # ------------------------------------------------------------ drawing

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        width = self.size.width
        if not width or not self._figures.is_attached or len(self.screen_stack) > 1:
            return
        lines = header.lines(self._trends, width, problem=self._problem, ascii_only=self._ascii_only)
        figures = Text("\n".join(lines), no_wrap=True, overflow="ellipsis")
        if self._problem:
            figures.stylize("bold red", 0, len(lines[0]))
        self._figures.update(figures)
        self._tabs.update(Text(self._tab_line(width), no_wrap=True, overflow="ellipsis"))
        if self.sample is not None:
            self._draw_table(rows_of(self._tab, self.sample, self._abouts, self._wish.find), width)

    def _tab_line(self, width: int) -> str:
        sample = self.sample or Sample(at=0.0)
        counts = {
            Tab.SESSIONS: sample.matching,
            Tab.ACTORS: len(sample.actors),
            Tab.PROCESSES: len(sample.processes),
            Tab.PLATFORMS: len(sample.platforms),
        }
        named = (f"{place} {tab} {counts[tab]}" for place, tab in enumerate(Tab, 1))
        shown = " ".join(
            f"[{name}]" if tab is self._tab else f" {name} " for tab, name in zip(Tab, named, strict=True)
        )
        wish = self._wish
        notes = (
            f"by {wish.sort}" if self._tab is Tab.SESSIONS else "",
            "busy" if wish.is_busy else "",
            f"/{wish.find}" if wish.find else "",
            "PAUSED" if self._is_paused else "",
        )
        return f"{shown} {' '.join(filter(None, notes))}"[:width]

    def _draw_table(self, rows: list[TableRow], width: int) -> None:
        table = self._table
        columns = fitted(self._tab, width - 2)  # beside the scroll bar
        keys = [row.key for row in rows]
        if columns != self._columns:
            table.clear(columns=True)
            self._columns, self._drawn = columns, []
            for each in columns:
                table.add_column(Text(_cut(each.name, each), no_wrap=True), width=each.width)
        cells = [self._cells(row) for row in rows]
        if keys == self._drawn:
            for place, row in enumerate(cells):
                for column, cell in enumerate(row):
                    if table.get_cell_at((place, column)) != cell:  # type: ignore[arg-type]
                        table.update_cell_at((place, column), cell)  # type: ignore[arg-type]
            return
        chosen_key, top = self.chosen_key, table.scroll_y
        table.clear()
        for key, row in zip(keys, cells, strict=True):
            table.add_row(*row, key=key)
        self._drawn = keys
        if chosen_key in keys:
            table.move_cursor(row=keys.index(chosen_key), animate=False, scroll=False)
        table.scroll_to(y=top, animate=False)

    def _cells(self, row: TableRow) -> list[Text]:
        style = _STYLES.get(row.state, "")
        texts = chosen(row, self._tab, self._columns)
        return [
            Text(_cut(text, column), style=style if column.name in ("STATE", "STEP") else "", no_wrap=True)
            for text, column in zip(texts, self._columns, strict=True)
        ]

    # ------------------------------------------------------------ what the cursor is on

    @property
    def chosen_key(self) -> str:
        row = self._table.cursor_row
        return self._drawn[row] if 0 <= row < len(self._drawn) else ""

    @property
    def chosen_session(self) -> str:
        """Return the session of the row; empty if it has none."""
        if self._tab is Tab.SESSIONS:
            return self.chosen_key
        if self._tab is Tab.PROCESSES and self.sample is not None:
            owners = {each.id: each.session_id for each in self.sample.processes}
            return owners.get(self.chosen_key, "")
        return ""

    # ------------------------------------------------------------ keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Leave the keys of the table to a screen above it."""
        return len(self.screen_stack) == 1 or action in ("quit", "help_quit")

    def action_tab(self, tab: str) -> None:
        self._tab = Tab(tab)
        self._draw()

    def action_keys(self) -> None:
        self.push_screen(KeyList())

    def action_order(self) -> None:
        self._want(replace(self._wish, sort=SORTS[(SORTS.index(self._wish.sort) + 1) % len(SORTS)]))

    def action_busy(self) -> None:
        self._want(replace(self._wish, is_busy=not self._wish.is_busy))

    def action_pause(self) -> None:
        self._is_paused = not self._is_paused
        self._draw()

    def action_filter(self) -> None:
        self._filter.add_class("open")
        self._filter.value = self._wish.find
        self._filter.focus()

    def action_clear(self) -> None:
        self._close_filter()
        self._want(replace(self._wish, find=""))

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "filter" and event.input.has_class("open"):
            self._want(replace(self._wish, find=event.value.strip()))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "filter":
            self._close_filter()

    def _close_filter(self) -> None:
        self._filter.remove_class("open")
        self._table.focus()

    def _want(self, wish: SampleWish) -> None:
        self._wish = wish
        self._wake.set()
        self._draw()

    def on_data_table_row_selected(self, _event: DataTable.RowSelected) -> None:
        self._open()

    def action_follow(self) -> None:
        self._open(follow=True)

    def _open(self, *, follow: bool = False) -> None:
        if session := self.chosen_session:
            self.push_screen(SessionScreen(self._source, session, follow=follow), lambda _: self._draw())

    def action_stop(self) -> None:
        if self._tab is Tab.PROCESSES and (process := self.chosen_key):
            self._kill(process)
        elif session := self.chosen_session:
            self.stop_session(session)

    def action_answer(self) -> None:
        if session := self.chosen_session:
            self.answer_session(session)

    # ------------------------------------------------------------ actions, also of the page of a session

    @work(group="act")
    async def stop_session(self, session: str) -> None:
        if await self.push_screen_wait(Confirmation(f"Stop the turn of {session}?")):
            await self._act(lambda: self._source.stop(session), "stopped")

    @work(group="act")
    async def _kill(self, process: str) -> None:
        if await self.push_screen_wait(Confirmation(f"Kill {process} and all that it started?")):
            await self._act(lambda: self._source.kill(process), "killed")

    @work(group="act")
    async def answer_session(self, session: str) -> None:
        try:
            pending = await asyncio.to_thread(self._source.pending, session)
        except HermesError as error:
            self.notify(printable(str(error)), severity="error", markup=False)
            return
        if pending is None:
            self.notify("this session waits for no answer", markup=False)
        elif answer := await self.push_screen_wait(AnswerDialog(pending)):
            await self._act(lambda: self._source.answer(pending, answer), f"answered: {answer}")

    async def _act(self, act: Callable[[], None], done: str) -> None:
        try:
            await asyncio.to_thread(act)
        except HermesError as error:
            self.notify(printable(str(error)), severity="error", markup=False)
        else:
            self.notify(printable(done), markup=False)
        self._wake.set()


def _cut(text: str, column: Column) -> str:
    """Return the text as one line in the width of a column."""
    clean, width = " ".join(printable(text).split()), column.width
    if cell_len(clean) > width:
        return f"{set_cell_size(clean, width - 1).rstrip()}…"
    return clean.rjust(width) if column.right else clean
