"""Answers and tables on a terminal."""

from __future__ import annotations

import os
import re
import time

import pytest

from hermes.cli.chat.view import keep_lines, split_blocks
from tests.cli.fake_admin import (
    Answer,
    FakeAdmin,
    Stream,
    chunk,
    completion,
    listing,
    named,
    tool_began,
    tool_ended,
)
from tests.cli.test_chat import COMPLETIONS, terminal
from tests.cli.test_inspect import on_a_terminal, session


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("", ""),
        ("one line", ""),
        ("a paragraph\n\nand th", "a paragraph\n\n"),
        ("one\n\ntwo\n\n", "one\n\ntwo\n\n"),
        ("```\ncode\n\nmore", ""),
        ("say:\n\n```\ncode\n\nmore", "say:\n\n"),
        ("```\ncode\n\n~~~\n```\n\nso", "```\ncode\n\n~~~\n```\n\n"),
    ],
)
def test_a_block_is_done_at_an_empty_line_outside_of_code(text: str, done: str) -> None:
    assert split_blocks(text) == (done, text.removeprefix(done))


def test_lines_outside_of_code_stay_lines() -> None:
    text = "one\ntwo\n\n```\ncode\nmore\n```\nlast"
    assert keep_lines(text) == "one  \ntwo  \n\n```\ncode\nmore\n```\nlast"


def test_markdown_is_rendered_on_a_terminal(admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "word " * 30
    parts = [
        *(chunk("Some **bold"), chunk("** text.\n"), chunk("\nThen "), tool_began(), tool_ended()),
        *(named("notice", text="trying again"), *completion(f"- [here](http://x/y)\n- {words}")),
    ]
    admin.routes[COMPLETIONS] = Stream(parts=parts)
    monkeypatch.setenv("COLUMNS", "60")
    with terminal("chat", TERM="xterm") as person:
        person.expect("you> ")
        person.type("go\n")
        shown = person.expect("\x1b[2m(trying again)")
        assert "\x1b[1mbold\x1b[0m" in shown
        assert "\x1b[2m\N{CHECK MARK} terminal: echo hi (250ms)" in shown
        rest = person.expect("you> ")
        assert "http://x/y" in rest  # where it leads, not only what it is called
        assert "\x1b]8;" not in rest
        assert not re.search(r"\b(w|wo|wor|ord|rd)\b", rest)
        person.type("\x04")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_ids_are_never_broken_in_a_list(admin: FakeAdmin, width: int) -> None:
    name = "20260102_030405_1a2b3c4d"
    admin.routes["GET /sessions"] = listing(session(name, phase="resume_pending", active_at=time.time() - 7300))
    first = {"role": "user", "content": "What is " + "a very long question " * 9}
    admin.routes[f"GET /api/sessions/{name}/messages"] = Answer(body={"messages": [first]})
    shown = on_a_terminal(["sessions"], COLUMNS=str(width), NO_COLOR="1")
    header, line = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert line.startswith(f"{name}  resume_pending  ")
    assert "What is" in line
    assert "…" in line
    assert len(line) <= width
    assert ("QUEUED" in header) == (width == 120)


def test_words_are_not_broken_at_the_right_edge(admin: FakeAdmin) -> None:
    admin.routes["GET /sessions/s1/why"] = Answer(body={"why": "It is idle because " + "somebody rests " * 20})
    shown = on_a_terminal(["why", "s1"], COLUMNS="40")
    assert set(shown.split()) == {"It", "is", "idle", "because", "somebody", "rests"}
    assert all(len(line) <= 40 for line in shown.splitlines())
    assert os.linesep.join(shown.splitlines()).count("rests") == 20
