"""Pure parts of the pages: conversation, waterfall, Markdown, numbers, and the log reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes.adapters.http.problem import Problem
from hermes.domain.ids import Seq, SessionId, TurnId
from hermes.domain.read.log_line import LogFilter
from hermes.domain.read.trace import TraceLine, TraceState, TraceStep
from hermes.domain.read.views import StoredMessage
from hermes.domain.turn.message import EncodedMessage
from hermes.services.log_reader import LogReader
from hermes.web import display
from hermes.web.conversation_view import MAX_RESULT_CHARS, conversation
from hermes.web.message_html import MAX_CHARS, message_html
from hermes.web.pages.trace_page import waterfall
from hermes.web.template_set import TemplateSet


def stored(seq: int, **message: Any) -> StoredMessage:
    return StoredMessage(seq=Seq(seq), at=0.0, turn=TurnId("t"), message=EncodedMessage(json.dumps(message).encode()))


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": f"id-{name}", "function": {"name": name, "arguments": json.dumps(arguments)}}


def test_result_is_shown_in_its_call() -> None:
    asked = stored(1, role="assistant", content=None, tool_calls=[call("terminal", command="ls -l"), call("todo")])
    long = "x" * (MAX_RESULT_CHARS + 5)
    (view,) = conversation([asked, stored(2, role="tool", tool_call_id="id-terminal", content=long)])
    first, second = view.calls
    assert (first.name, first.brief, first.cut) == ("terminal", "ls -l", 5)
    assert first.result == "x" * MAX_RESULT_CHARS
    assert second.result is None


def test_result_without_its_call_stands_by_itself() -> None:
    (view,) = conversation([stored(2, role="tool", tool_call_id="elsewhere", content="done")])
    assert view.role == "tool"
    assert view.calls[0].result == "done"


def test_arguments_that_are_not_json_are_shown_as_they_are() -> None:
    broken = {"id": "a", "function": {"name": "terminal", "arguments": '{"command": '}}
    (view,) = conversation([stored(1, role="assistant", content="", tool_calls=[broken])])
    assert view.calls[0].arguments == '{"command": '


@pytest.mark.parametrize("raw", ["[" * 50_000, '{"a":' * 600 + "1" + "}" * 600])
def test_arguments_that_are_nested_too_deeply_are_shown_as_they_are(raw: str) -> None:
    deep = {"id": "a", "function": {"name": "terminal", "arguments": raw}}
    (view,) = conversation([stored(1, role="assistant", content="", tool_calls=[deep])])
    assert "".join(view.calls[0].arguments.split()) == raw


async def test_lone_surrogate_in_a_message_can_be_sent() -> None:
    text = await TemplateSet().render(
        "problem.html", {"problem": Problem(status=400, code="x", message="a\ud800b"), "version": "1"}
    )
    assert "a?b" in text


def test_parts_of_a_message_are_text_and_pictures() -> None:
    name = "hermes-media:" + "0" * 64 + ".png"
    parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": name}}]
    (view,) = conversation([stored(1, role="user", content=parts)])
    assert (view.text, len(view.pictures)) == ("see", 1)


def test_bars_of_a_waterfall_stay_inside() -> None:
    steps = (
        TraceStep(at=10.0, what="accepted"),
        TraceStep(at=11.0, what="model", took_s=4.0),
        TraceStep(at=15.0, what="sent", took_s=5.0),
        TraceStep(at=20.0, what="end"),
    )
    line = TraceLine(
        at=10.0, session=SessionId("s"), turn=TurnId("t"), state=TraceState.SENT, platform="api", steps=steps
    )
    bars = waterfall(line, 20.0)["bars"]
    assert [(bar["x"], bar["width"]) for bar in bars] == [(0.0, 0.4), (10.0, 40.0), (50.0, 50.0), (99.6, 0.4)]


def test_waterfall_of_one_moment_has_no_division_by_zero() -> None:
    line = TraceLine(at=1.0, session=SessionId("s"), turn=TurnId("t"), state=TraceState.TAKEN, platform="api")
    assert waterfall(line, 2.0)["bars"] == []


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "[x](/ui/logout)",
        "![x](https://evil.example/p.png)",
        "<!-- --><svg onload=alert(1)>",
        "```html\n<script>alert(1)</script>\n```",
        "x" * MAX_CHARS + "<script>alert(1)</script>",
    ],
)
def test_markdown_never_becomes_active(text: str) -> None:
    shown = str(message_html(text))
    for active in ("<script", "<img", "<svg", "<!--", 'href="javascript', 'href="data', 'href="/'):
        assert active not in shown


def test_numbers_are_short() -> None:
    assert [display.size(each) for each in (0, 1023, 1536, 200 * 2**20)] == [
        "0 bytes",
        "1023 bytes",
        "1.5 KB",
        "200 MB",
    ]
    assert [display.span(each) for each in (None, 0.0042, 2.5, 90, 7200)] == [
        "-",
        "4 ms",
        "2.5 s",
        "1.5 min",
        "2.0 h",
    ]
    assert [display.money(each) for each in (0, 0.0021, 1234.5)] == ["$0.00", "$0.0021", "$1,234.50"]


async def test_log_is_read_newest_first(tmp_path: Path) -> None:
    file = tmp_path / "hermes.log"
    reader = LogReader(file)
    assert await reader.last(LogFilter(), 10) == []
    lines = [f"2026-11-17 10:00:0{n}.000 {'ERROR' if n == 1 else 'INFO '}   hermes.app: line {n}\n" for n in range(3)]
    file.write_text("".join([*lines, "Traceback\n"]), encoding="utf-8")
    assert [each.message for each in await reader.last(LogFilter(), 2)] == ["line 2\nTraceback", "line 1"]
    assert [each.message for each in await reader.last(LogFilter(level="ERROR"), 9)] == ["line 1"]
    assert [each.message for each in await reader.last(LogFilter(), 9, "LINE 0")] == ["line 0"]
