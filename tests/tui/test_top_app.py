"""The live view as a person uses it, with Textual's pilot and a source of the test."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, RichLog, Static, TabbedContent

from hermes.domain.errors import HermesError, NotRunningError
from hermes.domain.values import replace
from hermes.tui.top.dialog import AnswerDialog, KeyList
from hermes.tui.top.sample import ActorRow, PlatformRow, RunningProcess, Sample, SessionRow, TokenUse
from hermes.tui.top.session_screen import SessionScreen
from hermes.tui.top.source import LiveSource, Pending, Said, SampleWish, SessionDetail
from hermes.tui.top.top_app import TopApp
from hermes.tui.widgets.confirmation import Confirmation
from tests.support.waiting import until

RUNNING = SessionRow(
    id="20260102_030405_aaaaaaaa", phase="running", doing="tools", what=["terminal: make"], title="Build"
)
WAITING = SessionRow(id="20260102_030405_bbbbbbbb", phase="waiting", doing="approval", what=["rm -rf build"])
IDLE = SessionRow(id="20260102_030405_cccccccc", phase="idle", usage=TokenUse(prompt_tokens=2000), title="Taxes")
PENDING = Pending(
    session=WAITING.id, call="call-1", question="May I run rm -rf build?", choices=("once", "deny"), approval=True
)


class ScriptedSource(LiveSource):
    def __init__(self) -> None:
        self.sessions = [WAITING, RUNNING, IDLE]
        self.trouble: HermesError | None = None
        self.asked: list[SampleWish] = []
        self.done: list[tuple[str, ...]] = []
        self.waits: Pending | None = PENDING
        self.lines = ["the first line", "the second line"]
        self.followed = threading.Event()
        self.at = 0.0

    def sample(self, wish: SampleWish) -> Sample:
        self.asked.append(wish)
        if self.trouble is not None:
            raise self.trouble
        self.at += 1.0
        found = [each for each in self.sessions if wish.find in each.title.casefold()]
        return Sample(
            at=self.at,
            version="1.2.3",
            uptime_s=self.at,
            sessions=found,
            matching=len(found),
            phases={"waiting": 1, "running": 1, "idle": 1},
            actors=[ActorRow(kind="adapter", name="slack", state="down", last_error="no network")],
            platforms=[PlatformRow(name="slack", state="down", problem="no network")],
            processes=[RunningProcess(id="proc_1", session_id=RUNNING.id, command="make serve")],
        )

    def beginning(self, session: str) -> str:
        return "please clean up" if session == WAITING.id else ""

    def page(self, session: str) -> SessionDetail:
        return SessionDetail(
            id=session,
            title="Build",
            phase="running",
            facts="cli, 1 turn",
            transcript=(Said(who="user", at=0.0, text="build it"),),
            timeline=("Turn t of s: 1 attempt", "  accepted"),
            why="It runs since then.",
        )

    def pending(self, session: str) -> Pending | None:
        return self.waits if self.waits is not None and session == self.waits.session else None

    def answer(self, pending: Pending, answer: str) -> None:
        self.done.append(("answer", pending.call, answer))

    def stop(self, session: str) -> None:
        self.done.append(("stop", session))

    def kill(self, process: str) -> None:
        self.done.append(("kill", process))

    def follow(self, session: str, show: Callable[[str], None], is_over: Callable[[], bool]) -> None:
        for line in self.lines:
            show(line)
        self.lines = []
        self.followed.set()


class PatientApp(TopApp):
    NOTIFICATION_TIMEOUT = 600  # a message stays while the machine stalls


class Harness:
    def __init__(self, source: ScriptedSource, app: TopApp, pilot: Pilot[None]) -> None:
        self.source = source
        self.app = app
        self.pilot = pilot

    async def sees(self, text: str) -> None:
        await until(lambda: text in self.screen_text())

    def screen_text(self) -> str:
        """Return what the screen shows, line by line."""
        lines = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip) for strip in lines)

    async def shows(self, kind: type) -> None:
        await until(lambda: isinstance(self.app.screen, kind))
        await self.pilot.pause()


@asynccontextmanager
async def running(
    source: ScriptedSource | None = None, *, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[Harness]:
    source = source or ScriptedSource()
    app = PatientApp(source, every_s=0.05)
    async with app.run_test(size=size) as pilot:
        await until(lambda: app.sample is not None or source.trouble is not None)
        await pilot.pause()
        yield Harness(source, app, pilot)


async def test_sessions_are_listed_with_state_step_and_title() -> None:
    async with running() as top:
        await top.sees("please clean up")
        text = top.screen_text()
        assert "hermes 1.2.3" in text
        assert "waiting" in text
        assert "terminal: ma" in text
        assert "2.0k" in text
        assert "Taxes" in text


async def test_number_keys_change_the_table() -> None:
    async with running() as top:
        for key, text in (("2", "no network"), ("3", "make serve"), ("4", "PROBLEM"), ("1", "Taxes")):
            await top.pilot.press(key)
            await top.sees(text)


async def test_order_and_busy_are_asked_from_the_daemon() -> None:
    async with running() as top:
        await top.pilot.press("o", "b")
        await until(lambda: top.source.asked[-1] == SampleWish(sort="age", is_busy=True))
        await top.sees("by age busy")


async def test_filter_narrows_the_list_and_escape_clears_it() -> None:
    async with running() as top:
        await top.pilot.press("slash", *"taxes", "enter")
        await until(lambda: top.app.query_one(DataTable).row_count == 1)
        assert not top.app.query_one("#filter", Input).has_class("open")
        await top.pilot.press("escape")
        await until(lambda: top.app.query_one(DataTable).row_count == 3)


async def test_cursor_stays_on_its_session_when_the_order_changes() -> None:
    async with running() as top:
        await until(lambda: top.app.query_one(DataTable).row_count == 3)
        await top.pilot.press("down")
        assert top.app.chosen_session == RUNNING.id
        top.source.sessions = [IDLE, WAITING, RUNNING]
        await until(lambda: top.app._drawn == [IDLE.id, WAITING.id, RUNNING.id])
        await top.pilot.pause()
        assert top.app.chosen_session == RUNNING.id


async def test_enter_opens_transcript_timeline_and_why() -> None:
    async with running() as top:
        await until(lambda: top.app.query_one(DataTable).row_count == 3)
        await top.pilot.press("enter")
        await top.shows(SessionScreen)
        await top.sees("build it")
        await top.pilot.press("2")
        await top.sees("accepted")
        await top.pilot.press("3")
        await top.sees("It runs since then.")
        await top.pilot.press("escape")
        await until(lambda: len(top.app.screen_stack) == 1)
        await top.sees("Taxes")


async def test_follow_shows_live_text() -> None:
    async with running() as top:
        await until(lambda: top.app.query_one(DataTable).row_count == 3)
        await top.pilot.press("f")
        await top.shows(SessionScreen)
        assert top.app.screen.query_one(TabbedContent).active == "live"
        await until(top.source.followed.is_set)
        await until(lambda: len(top.app.screen.query_one(RichLog).lines) >= 2)


async def test_stop_asks_before_it_stops() -> None:
    async with running() as top:
        await until(lambda: top.app.query_one(DataTable).row_count == 3)
        await top.pilot.press("down", "x")
        await top.shows(Confirmation)
        await top.pilot.press("n")
        await until(lambda: len(top.app.screen_stack) == 1)
        await top.pilot.press("x")
        await top.shows(Confirmation)
        await top.pilot.press("y")
        await until(lambda: top.source.done == [("stop", RUNNING.id)])


async def test_process_is_killed_from_its_table() -> None:
    async with running() as top:
        await top.pilot.press("3")
        await top.sees("make serve")
        assert top.app.chosen_session == RUNNING.id
        await top.pilot.press("x")
        await top.shows(Confirmation)
        await top.pilot.press("y")
        await until(lambda: top.source.done == [("kill", "proc_1")])


async def test_approval_is_answered_with_one_of_its_choices() -> None:
    async with running() as top:
        await until(lambda: top.app.query_one(DataTable).row_count == 3)
        await top.pilot.press("a")
        await top.shows(AnswerDialog)
        await top.sees("May I run rm -rf build?")
        await top.pilot.press("down", "enter")
        await until(lambda: top.source.done == [("answer", "call-1", "deny")])


async def test_question_is_answered_with_text() -> None:
    async with running() as top:
        top.source.waits = replace(PENDING, choices=(), approval=False)
        await until(lambda: top.app.query_one(DataTable).row_count == 3)
        await top.pilot.press("a")
        await top.shows(AnswerDialog)
        await top.pilot.press(*"blue", "enter")
        await until(lambda: top.source.done == [("answer", "call-1", "blue")])


async def test_session_that_waits_for_nothing_needs_no_answer() -> None:
    async with running() as top:
        await until(lambda: top.app.query_one(DataTable).row_count == 3)
        await top.pilot.press("down", "a")
        await until(lambda: [each.message for each in top.app._notifications] == ["this session waits for no answer"])
        assert top.source.done == []


async def test_outage_of_the_daemon_is_shown_and_the_view_continues() -> None:
    async with running() as top:
        await top.sees("Taxes")
        top.source.trouble = NotRunningError("no daemon runs on /srv/hermes")
        await top.sees("no answer: no daemon runs")
        assert "Taxes" in top.screen_text()  # the last sample stays
        top.source.trouble = None
        await until(lambda: "no answer" not in top.screen_text())


async def test_pause_takes_no_samples() -> None:
    async with running() as top:
        await top.pilot.press("p")
        await top.sees("PAUSED")
        await until(lambda: top.app._is_paused)
        taken = len(top.source.asked)
        await top.pilot.pause(0.3)
        assert len(top.source.asked) - taken <= 1  # one may have been under way


async def test_question_mark_lists_the_keys() -> None:
    async with running() as top:
        await top.pilot.press("question_mark")
        await top.shows(KeyList)
        await top.sees("follow the session live")
        await top.pilot.press("escape")
        await until(lambda: len(top.app.screen_stack) == 1)


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (200, 50)])
async def test_every_line_fits_the_terminal(size: tuple[int, int]) -> None:
    async with running(size=size) as top:
        await until(lambda: top.app.query_one(DataTable).row_count == 3)
        figures = str(top.app.query_one("#figures", Static).render())
        assert all(len(line) <= size[0] for line in figures.splitlines())
        await top.pilot.resize_terminal(60, 16)
        await top.sees("running")


async def test_state_is_readable_without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running() as top:
        await top.sees("waiting")
        await top.sees("running")
