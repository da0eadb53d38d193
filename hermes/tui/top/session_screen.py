"""Page of one session: transcript, timeline, why, and its live events."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, RichLog, Static, TabbedContent, TabPane

from hermes.domain.errors import HermesError
from hermes.tui.top.source import LiveSource, SessionDetail
from hermes.tui.top.words import printable

if TYPE_CHECKING:
    from hermes.tui.top.top_app import TopApp

_REFRESH_S = 2.0
_PAGES = ("transcript", "timeline", "why")
_MAX_LINES = 2000  # of live events


class SessionScreen(Screen[None]):
    DEFAULT_CSS = """
    SessionScreen #facts { height: auto; max-height: 3; }
    SessionScreen TabbedContent, SessionScreen ContentSwitcher { height: 1fr; }
    SessionScreen TabPane { padding: 0; height: 1fr; }
    SessionScreen VerticalScroll, SessionScreen RichLog { height: 1fr; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Back"),
        Binding("1", "show('transcript')", "Transcript"),
        Binding("2", "show('timeline')", "Timeline"),
        Binding("3", "show('why')", "Why"),
        Binding("4,f", "show('live')", "Follow"),
        Binding("x", "stop", "Stop"),
        Binding("a", "answer", "Answer"),
    ]

    def __init__(self, source: LiveSource, session: str, *, follow: bool = False) -> None:
        super().__init__()
        self._source = source
        self.session = session
        self._first = "live" if follow else "transcript"
        self._shown: SessionDetail | None = None
        self._over = threading.Event()
        # Kept here: a page can arrive while the screen is being removed.
        self._facts = Static(session, id="facts", markup=False)
        self._texts = {name: Static("", id=f"{name}-text", markup=False) for name in _PAGES}
        self._log = RichLog(wrap=True, markup=False, max_lines=_MAX_LINES, min_width=20, id="log")
        self._scroll = VerticalScroll(self._texts["transcript"])

    def compose(self) -> ComposeResult:
        yield self._facts
        with TabbedContent(initial=self._first):
            for name, text in self._texts.items():
                with TabPane(name.capitalize(), id=name):
                    yield self._scroll if name == "transcript" else VerticalScroll(text)
            with TabPane("Live", id="live"):
                yield self._log
        yield Footer()

    def on_mount(self) -> None:
        self._read()
        self._follow()

    def on_unmount(self) -> None:
        self._over.set()

    # ------------------------------------------------------------ reading

    @work(exclusive=True, group="page")
    async def _read(self) -> None:
        while True:
            try:
                page = await asyncio.to_thread(self._source.page, self.session)
            except HermesError as error:
                self._facts.update(printable(str(error)))
            else:
                self._show(page)
            await asyncio.sleep(_REFRESH_S)

    def _show(self, page: SessionDetail) -> None:
        if not self._facts.is_attached:
            return
        self._facts.update(
            "\n".join(filter(None, (f"{page.id}  {page.title}".rstrip(), f"{page.phase}  {page.facts}")))
        )
        if self._shown == page:
            return
        is_first = self._shown is None
        self._shown = page
        said = (
            f"{time.strftime('%H:%M:%S', time.localtime(each.at))}  {each.who}\n{each.text}"
            for each in page.transcript
        )
        self._texts["transcript"].update(printable("\n\n".join(said)) or "No messages yet.")
        self._texts["timeline"].update(printable("\n".join(page.timeline)) or "No messages yet.")
        self._texts["why"].update(printable(page.why))
        if is_first or self._scroll.is_vertical_scroll_end:
            self._scroll.scroll_end(animate=False)

    @work(thread=True, group="follow")
    def _follow(self) -> None:
        """Show live events. Connects again after a restart of the daemon."""
        while not self._over.is_set():
            try:
                self._source.follow(self.session, self._write, self._over.is_set)
            except HermesError as error:
                self._write(f"({error}; waiting for the daemon)")
            self._over.wait(_REFRESH_S)

    def _write(self, text: str) -> None:
        if not self._over.is_set():
            with suppress(RuntimeError):  # the app has ended
                self.app.call_from_thread(self._add_line, text)

    def _add_line(self, text: str) -> None:
        if not self._over.is_set() and self._log.is_attached:
            self._log.write(printable(text))

    # ------------------------------------------------------------ keys

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_show(self, tab: str) -> None:
        self.query_one(TabbedContent).active = tab

    def action_stop(self) -> None:
        self._top.stop_session(self.session)

    def action_answer(self) -> None:
        self._top.answer_session(self.session)

    @property
    def _top(self) -> TopApp:
        from hermes.tui.top.top_app import TopApp  # noqa: PLC0415 - it imports this module

        assert isinstance(self.app, TopApp)
        return self.app
