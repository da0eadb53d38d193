"""Terminal interface driven by Textual's pilot, over a daemon in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import OptionList

from hermes.config.trust import read_answers
from hermes.tui.chat.app import ChatApp, ChatOptions
from hermes.tui.chat.chat_screen import ChatScreen
from hermes.tui.chat.completion import Candidate
from hermes.tui.chat.figures import LinkState
from hermes.tui.chat.preferences import read_theme
from hermes.tui.themes import CONTRAST, LIGHT
from hermes.tui.widgets.blocks import AnswerBlock, ToolBlock
from hermes.tui.widgets.completion_menu import CompletionMenu
from hermes.tui.widgets.dialogs import ChoiceScreen, HelpScreen, SessionPicker
from hermes.tui.widgets.editor import PromptEditor
from hermes.tui.widgets.question_menu import QuestionMenu
from hermes.tui.widgets.side_bar import SideBar
from tests.support.waiting import until
from tests.tui.fake_daemon import SESSION, FakeDaemon, session_json
from tests.tui.screen_text import screen_text

APPROVAL = {"call_id": "c", "name": "terminal", "question": "rm -r /x", "choices": ["once", "session", "deny"]}
PATCH = "--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n-old line\n+new line\n kept"


@asynccontextmanager
async def running(
    daemon: FakeDaemon, home: Path, *, size: tuple[int, int] = (80, 24), **options: Any
) -> AsyncIterator[tuple[ChatApp, Pilot[None]]]:
    app = ChatApp(ChatOptions(data_dir=home, session=SESSION, **options), daemon)
    async with app.run_test(size=size) as pilot:
        await until(lambda: app.link.connection is LinkState.ONLINE)
        yield app, pilot


def editor(app: ChatApp) -> PromptEditor:
    return app.screen.query_one(PromptEditor)


async def shows(pilot: Pilot[None], app: ChatApp, text: str) -> None:
    await until(lambda: text in screen_text(app))
    await pilot.pause()


async def begin_turn(daemon: FakeDaemon, app: ChatApp, pilot: Pilot[None], text: str = "hello") -> None:
    editor(app).set_text(text)
    await pilot.press("enter")
    await until(lambda: daemon.is_followed("t1"))
    daemon.emit("t1", "run.started", stored="2")


async def test_typed_message_is_answered_as_markdown(tmp_path: Path) -> None:
    daemon = FakeDaemon()
    async with running(daemon, tmp_path) as (app, pilot):
        await pilot.press(*"hi there", "enter")
        await until(lambda: daemon.is_followed("t1"))
        daemon.emit("t1", "run.started", stored="2")
        for piece in ("# Title\n\nSome **bo", "ld** text\n\n```python\nprint(1)\n```\n"):
            daemon.emit("t1", "message.delta", text=piece)
        await shows(pilot, app, "print(1)")
        text = screen_text(app)
        assert "hi there" in text
        assert "Some bold text" in text
        assert "writing" in text
        daemon.emit("t1", "run.completed", stored="3", output="# Title\n\nDone.")
        await shows(pilot, app, "ready")
        assert len(app.screen.query(AnswerBlock)) == 1


async def test_new_lines_and_history(tmp_path: Path) -> None:
    daemon = FakeDaemon()
    async with running(daemon, tmp_path) as (app, pilot):
        await pilot.press(*"one", "ctrl+j", *"two", "alt+enter", *"three\\", "enter", *"four")
        assert editor(app).text == "one\ntwo\nthree\nfour"
        await pilot.press("enter")
        await until(lambda: daemon.keys)
        assert daemon.asked[-1][2]["input"] == "one\ntwo\nthree\nfour"
        await pilot.press("up")
        assert editor(app).text == "one\ntwo\nthree\nfour"
        await until((tmp_path / "chat_history.jsonl").exists)


async def test_ten_thousand_pasted_lines_stay_text(tmp_path: Path) -> None:
    pasted = "\n".join(f"line {number}" for number in range(10_000))
    daemon = FakeDaemon()
    async with running(daemon, tmp_path) as (app, pilot):
        editor(app).post_message(Paste(pasted))
        await until(lambda: editor(app).text)
        assert editor(app).text == pasted
        await pilot.press("enter")
        await until(lambda: daemon.keys)
        sent = next(body for _, path, body in daemon.asked if path == "/v1/runs")
        assert sent["input"] == pasted
        await shows(pilot, app, "more lines")


async def test_completion_menu_of_commands(tmp_path: Path) -> None:
    async with running(FakeDaemon(), tmp_path) as (app, pilot):
        menu = app.screen.query_one(CompletionMenu)
        await until(lambda: len(app.screen.query_one("InputArea").commands) > 4)  # type: ignore[attr-defined]
        await pilot.press("/", "s")
        await until(lambda: menu.is_open)
        assert menu.chosen is not None
        assert menu.chosen.text == "/status"
        await pilot.press("tab")
        assert editor(app).text == "/status"
        await until(lambda: not menu.is_open)


async def test_completion_menu_shows_no_control_characters(tmp_path: Path) -> None:
    async with running(FakeDaemon(), tmp_path) as (app, pilot):
        menu = app.screen.query_one(CompletionMenu)
        menu.show([Candidate(text="/resume 2026_a", about="red \x1b[31mtitle\x1b]0;owned\x07 \x1b")])
        await pilot.pause()
        shown = "".join(segment.text for segment in menu.render_line(0))
        assert "red title" in shown
        assert "\x1b" not in shown


async def test_files_are_completed_in_the_working_directory(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "main.py").touch()
    async with running(FakeDaemon(), tmp_path, workdir=str(project)) as (app, pilot):
        await pilot.press(*"see @ma")
        await until(lambda: app.screen.query_one(CompletionMenu).is_open)
        await pilot.press("tab")
        assert editor(app).text == "see @main.py"


async def test_tool_call_shows_live_output_and_folds_with_its_result(tmp_path: Path) -> None:
    daemon = FakeDaemon()
    async with running(daemon, tmp_path) as (app, pilot):
        await begin_turn(daemon, app, pilot)
        daemon.emit("t1", "tool.started", stored="3", call_id="c", name="terminal", summary="make")
        daemon.emit("t1", "tool.progress", call_id="c", text="compiling")
        await shows(pilot, app, "compiling")
        assert "running terminal" in screen_text(app)
        daemon.messages = [{"seq": 2, "turn": "t1", "role": "tool", "tool_call_id": "c", "content": "all built"}]
        daemon.emit("t1", "tool.completed", stored="4", call_id="c", name="terminal", outcome="ok", took_s=2.5)
        await shows(pilot, app, "✓ 2.5 s")
        await until(lambda: app.link.view.blocks[-1].result)
        assert "all built" not in screen_text(app)
        await pilot.press("ctrl+o")
        await shows(pilot, app, "all built")


async def test_patch_is_shown_as_a_diff(tmp_path: Path) -> None:
    daemon = FakeDaemon()
    async with running(daemon, tmp_path) as (app, pilot):
        await begin_turn(daemon, app, pilot)
        daemon.emit("t1", "tool.started", stored="3", call_id="c", name="patch", summary="a.py")
        daemon.messages = [{"seq": 2, "turn": "t1", "role": "tool", "tool_call_id": "c", "content": PATCH}]
        daemon.emit("t1", "tool.completed", stored="4", call_id="c", name="patch", outcome="ok", took_s=0)
        await shows(pilot, app, "+new line")
        assert app.screen.query_one(ToolBlock).is_unfolded


@pytest.mark.parametrize(("keys", "answer"), [(("d",), "deny"), (("y",), "once"), (("down", "enter"), "session")])
async def test_approval_is_answered_by_a_key(tmp_path: Path, keys: tuple[str, ...], answer: str) -> None:
    daemon = FakeDaemon()
    async with running(daemon, tmp_path) as (app, pilot):
        await begin_turn(daemon, app, pilot)
        ask = {"call_id": "c", "name": "terminal", "question": "rm -r /x", "choices": ["once", "session", "deny"]}
        daemon.emit("t1", "approval.request", stored="3", **ask)
        await shows(pilot, app, "needs your approval")
        await until(lambda: takes_keys(app))
        await pilot.press(*keys)
        path = f"/api/sessions/{SESSION}/answer"
        await until(lambda: ("POST", path, {"answer": answer, "call_id": "c"}) in daemon.asked)
        daemon.emit("t1", "answered", stored="4", call_id="c")
        await until(lambda: not app.screen.query_one(QuestionMenu).has_class("open"))


async def test_chosen_answer_is_seen_without_colour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    daemon = FakeDaemon()
    async with running(daemon, tmp_path) as (app, pilot):
        await begin_turn(daemon, app, pilot)
        ask = {"call_id": "c", "name": "terminal", "question": "rm -r /x", "choices": ["once", "always", "deny"]}
        daemon.emit("t1", "approval.request", stored="3", **ask)
        await shows(pilot, app, "needs your approval")
        await until(lambda: takes_keys(app))
        await pilot.press("down")
        await until(lambda: underlined(app) == ["[a] always  allow this kind of call in all sessions"])


def underlined(app: ChatApp) -> list[str]:
    segments = (segment for strip in app.screen._compositor.render_strips() for segment in strip)
    found = [each.text.strip() for each in segments if each.style is not None and each.style.underline]
    return [text for text in found if text]


async def test_question_does_not_take_keys_that_are_meant_for_the_editor(tmp_path: Path) -> None:
    daemon = FakeDaemon()
    async with running(daemon, tmp_path) as (app, pilot):
        await begin_turn(daemon, app, pilot)
        await pilot.press(*"do")
        ask = {"call_id": "c", "name": "terminal", "question": "rm -r /x", "choices": ["once", "deny"]}
        daemon.emit("t1", "approval.request", stored="3", **ask)
        await shows(pilot, app, "needs your approval")
        await shows(pilot, app, "Tab: answer with a letter; or type /approve or /deny")
        await pilot.press("d")
        assert editor(app).text == "dod"
        await pilot.press("tab")
        await shows(pilot, app, "A letter, or arrow keys and Enter; Tab: back to the editor")
        await pilot.press("tab")
        await shows(pilot, app, "Tab: answer with a letter")
        assert not [each for each in daemon.asked if each[1].endswith("/answer")]


def takes_keys(app: ChatApp) -> bool:
    """Return whether the open question has taken the focus by itself, and its keys count."""
    menu = app.screen.query_one(QuestionMenu)
    return menu.has_focus_within and not menu.is_guarded


async def test_key_right_after_a_question_took_the_focus_goes_to_the_editor(tmp_path: Path) -> None:
    daemon = FakeDaemon()
    async with running(daemon, tmp_path) as (app, pilot):
        await begin_turn(daemon, app, pilot)
        daemon.emit("t1", "approval.request", stored="3", **APPROVAL)
        await shows(pilot, app, "needs your approval")
        await until(lambda: takes_keys(app))
        menu = app.screen.query_one(QuestionMenu)
        menu.take_focus()
        await pilot.press("d")
        await until(lambda: editor(app).text == "d")
        assert app.focused is editor(app)
        assert not menu.wants_focus
        assert not [each for each in daemon.asked if each[1].endswith("/answer")]


async def test_denied_call_shows_its_command(tmp_path: Path) -> None:
    daemon = FakeDaemon()
    async with running(daemon, tmp_path) as (app, pilot):
        await begin_turn(daemon, app, pilot)
        ended = {"call_id": "c", "name": "terminal", "outcome": "denied", "took_s": 0, "summary": "rm -r /x"}
        daemon.emit("t1", "tool.completed", stored="3", **ended)
        await shows(pilot, app, "terminal rm -r /x  ✗ denied")


async def test_escape_stops_the_answer_and_ctrl_n_sends_instead(tmp_path: Path) -> None:
    daemon = FakeDaemon()
    async with running(daemon, tmp_path) as (app, pilot):
        await begin_turn(daemon, app, pilot)
        await shows(pilot, app, "thinking")
        stop = ("POST", f"/sessions/{SESSION}/stop", {"reason": "stopped in the terminal", "turn_id": "t1"})
        await pilot.press("escape")
        await until(lambda: stop in daemon.asked)
        await pilot.press(*"no, that", "ctrl+n")
        await until(lambda: len(daemon.keys) == 2)
        assert daemon.asked.count(stop) == 2


async def test_daemon_that_goes_away_is_shown_and_what_is_typed_is_kept(tmp_path: Path) -> None:
    daemon = FakeDaemon()
    async with running(daemon, tmp_path) as (app, pilot):
        await begin_turn(daemon, app, pilot)
        daemon.cut()
        await shows(pilot, app, "daemon away")
        await pilot.press(*"still here", "enter")
        await shows(pilot, app, "kept, sent when a daemon is back")
        daemon.down = False
        await until(lambda: len(daemon.keys) == 2)
        await shows(pilot, app, "still here")


async def test_sessions_are_found_and_opened(tmp_path: Path) -> None:
    daemon = FakeDaemon()
    daemon.sessions = [session_json(), {**session_json(), "id": "s7", "title": "Garden plan"}]
    async with running(daemon, tmp_path) as (app, pilot):
        await pilot.press("ctrl+r")
        await until(lambda: isinstance(app.screen, SessionPicker))
        await pilot.press(*"garden")
        await until(lambda: app.screen.query_one(OptionList).option_count == 1)
        await pilot.press("enter")
        await until(lambda: app.link.view.session == "s7")


async def test_theme_is_remembered(tmp_path: Path) -> None:
    async with running(FakeDaemon(), tmp_path) as (app, pilot):
        await pilot.press("ctrl+t")
        await until(lambda: app.theme == LIGHT)
        await pilot.press("ctrl+t")
        await until(lambda: app.theme == CONTRAST)
    assert await asyncio.to_thread(read_theme, tmp_path) == CONTRAST
    async with running(FakeDaemon(), tmp_path) as (app, pilot):
        await until(lambda: app.theme == CONTRAST)


async def test_help_lists_keys_and_commands(tmp_path: Path) -> None:
    async with running(FakeDaemon(), tmp_path) as (app, pilot):
        await pilot.press("f1")
        await until(lambda: isinstance(app.screen, HelpScreen))
        await shows(pilot, app, "Ctrl-N")
        await pilot.press("escape")
        await until(lambda: not isinstance(app.screen, HelpScreen))


async def test_subagents_are_shown_opened_and_ended_in_the_side_bar(tmp_path: Path) -> None:
    daemon = FakeDaemon()
    daemon.session = session_json()
    agent = {"id": "child1", "task": "Read the log", "phase": "running", "doing": ["terminal: tail"], "tokens": 1200}
    waits: dict[str, Any] = {"id": "child2", "task": "Read the mail", "phase": None, "doing": [], "tokens": 0}
    daemon.agents = [agent, waits]
    path = f"/api/sessions/{SESSION}/commands"
    daemon.routes[f"POST {path}"] = lambda body: {"ok": True, "text": f"{body['text']} done", "session_id": SESSION}
    async with running(daemon, tmp_path, size=(120, 30)) as (app, pilot):
        await shows(pilot, app, "terminal: tail, 1,200 tokens")
        assert "waits for a place" in screen_text(app)
        await pilot.press("ctrl+b", "x")
        await shows(pilot, app, "End subagent child1?")
        await pilot.press("y")
        await until(lambda: ("POST", path, {"text": "/agents stop child1"}) in daemon.asked)
        await until(lambda: isinstance(app.screen, ChatScreen))
        await pilot.press("enter")
        await until(lambda: ("GET", "/api/sessions/child1", None) in daemon.asked)


async def test_processes_open_the_side_bar_on_a_wide_screen_only(tmp_path: Path) -> None:
    daemon = FakeDaemon()
    daemon.session = session_json()
    process = {"id": "p1", "command": "sleep 99", "running": True, "started_at": 1.0, "age_s": 65.0, "ports": []}
    daemon.processes = [process]
    async with running(daemon, tmp_path, size=(120, 30)) as (app, pilot):
        await shows(pilot, app, "sleep 99")
        await pilot.resize_terminal(60, 20)
        await until(lambda: not app.screen.query_one(SideBar).has_class("open"))
        await pilot.press("ctrl+b")
        await shows(pilot, app, "sleep 99")


async def test_output_of_a_process_is_shown_and_it_is_ended_after_a_yes(tmp_path: Path) -> None:
    daemon = FakeDaemon()
    daemon.session = session_json()
    daemon.processes = [
        {"id": "p1", "command": "sleep 99", "running": True, "started_at": 1.0, "age_s": 65.0, "ports": []}
    ]
    log = {"offset": 0, "text": "listening\n\x1b[31mred"}
    daemon.routes["GET /api/processes/p1/log"] = lambda _: log
    daemon.routes["POST /api/processes/p1/kill"] = lambda _: {}
    async with running(daemon, tmp_path) as (app, pilot):
        await pilot.press("ctrl+b")
        await shows(pilot, app, "sleep 99")
        await pilot.press("enter")
        await shows(pilot, app, "listening")
        assert "\x1b" not in screen_text(app)
        await pilot.press("x")
        await shows(pilot, app, "End p1 and all that it started?")
        await pilot.press("n")
        await until(lambda: isinstance(app.screen, ChatScreen))
        await pilot.press("x")
        await shows(pilot, app, "End p1 and all that it started?")
        await pilot.press("y")
        await until(lambda: ("POST", "/api/processes/p1/kill", None) in daemon.asked)
        await pilot.press("ctrl+b")
        await until(lambda: app.focused is editor(app))


async def test_several_sessions_of_a_title_are_offered(tmp_path: Path) -> None:
    daemon = FakeDaemon()
    daemon.sessions = [session_json(id=f"2026_{name}", title=f"trip to {name}") for name in ("lima", "cusco", "ulm")]
    daemon.sessions.append(session_json(id="2026_other", title="other"))
    async with running(daemon, tmp_path, find="Trip") as (app, pilot):
        await until(lambda: isinstance(app.screen, SessionPicker))
        await shows(pilot, app, "trip to cusco")
        assert "other" not in screen_text(app)
        await pilot.press("down", "enter")
        await until(lambda: app.link.view.session == "2026_cusco")


async def test_code_block_of_the_last_answer_is_copied(tmp_path: Path) -> None:
    daemon = FakeDaemon()
    async with running(daemon, tmp_path) as (app, pilot):
        await begin_turn(daemon, app, pilot)
        answer = "One:\n```sh\nls\n```\nand two:\n~~~~\n```\nb\n~~~~\n"
        daemon.emit("t1", "run.completed", stored="3", output=answer)
        await shows(pilot, app, "and two")
        for command, copied in (("/copy", answer), ("/copy code", "```\nb"), ("/copy code 1", "ls")):
            editor(app).set_text(command)
            await pilot.press("escape", "enter")
            await until(lambda copied=copied: app.clipboard == copied)  # type: ignore[misc]


async def test_directory_is_trusted_once(tmp_path: Path) -> None:
    daemon = FakeDaemon()
    project = tmp_path / "project"
    project.mkdir()
    async with running(daemon, tmp_path, ask_directory=project) as (app, pilot):
        await until(lambda: isinstance(app.screen, ChoiceScreen))
        await pilot.press(*"why", "enter")
        assert app.link.workdir is None
        await pilot.press("down", "enter")
        await until(lambda: app.link.workdir == str(project))
    assert (tmp_path / "trusted_directories.json").exists()


async def test_letter_moves_to_a_choice(tmp_path: Path) -> None:
    daemon = FakeDaemon()
    async with running(daemon, tmp_path, ask_directory=tmp_path) as (app, pilot):
        await until(lambda: isinstance(app.screen, ChoiceScreen))
        await pilot.press("n", "enter")
        await until(lambda: not isinstance(app.screen, ChoiceScreen))
        assert app.link.workdir is None
    assert await asyncio.to_thread(read_answers, tmp_path) == {str(tmp_path): False}


async def test_empty_conversation_greets_with_the_last_ones(tmp_path: Path) -> None:
    daemon = FakeDaemon()
    daemon.sessions = [{**session_json(title="Trip to Lima"), "active_at": 1.0}]
    async with running(daemon, tmp_path, workdir="/srv/project") as (app, pilot):
        await shows(pilot, app, "Trip to Lima")
        assert "/srv/project" in screen_text(app)
        await begin_turn(daemon, app, pilot)
        await until(lambda: "Trip to Lima" not in screen_text(app))


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (200, 60)])
async def test_every_size_shows_the_editor_and_the_state(tmp_path: Path, size: tuple[int, int]) -> None:
    daemon = FakeDaemon()
    async with running(daemon, tmp_path, size=size) as (app, pilot):
        await begin_turn(daemon, app, pilot)
        daemon.emit("t1", "message.delta", text="word " * 400)
        await shows(pilot, app, "writing")
        await pilot.press(*"typed")
        lines = screen_text(app).splitlines()
        assert "typed" in lines[-2]
        assert "working" in lines[-1]
        assert max(map(len, lines)) <= size[0]


async def test_ctrl_c_clears_then_exits(tmp_path: Path) -> None:
    async with running(FakeDaemon(), tmp_path) as (app, pilot):
        await pilot.press(*"abc", "ctrl+c")
        assert editor(app).text == ""
        await pilot.press("ctrl+c", "ctrl+c")
        await until(lambda: not app.is_running or app._exit)
