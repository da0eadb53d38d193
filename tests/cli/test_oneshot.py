"""`hermes chat -z` with an agent that uses tools, asks, waits and is cut off."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest

from hermes.config.home import Home
from tests.cli.conftest import Hermes, command
from tests.cli.fake_admin import (
    EVENTS,
    Answer,
    Asked,
    FakeAdmin,
    Stream,
    approval,
    completed,
    completion,
    delta,
    named,
    question,
    tool_began,
    tool_ended,
)
from tests.cli.test_inspect import VIEW, session
from tests.cli.test_setup import until_shown

ANSWER = "POST /api/sessions/s1/answer"


def test_oneshot_prints_text_after_the_last_tool_call(admin: FakeAdmin, hermes: Hermes) -> None:
    parts = [delta("Let me look."), tool_began(), tool_ended(), *completion("It is 5.")]
    admin.routes[EVENTS] = Stream(parts=parts)
    done = hermes("chat", "-z", "?")
    assert (done.returncode, done.stdout, done.stderr) == (0, "It is 5.\n", "")


def test_answer_appears_on_a_terminal_while_it_is_written(admin: FakeAdmin, home: Home) -> None:
    seen = threading.Event()

    def parts() -> Iterator[bytes]:
        yield delta("The first ")
        assert seen.wait(60)  # the rest comes only after the terminal showed this
        yield from (delta("and the rest."), completed("The first and the rest."))

    admin.routes[EVENTS] = Stream(parts=parts())
    parent, child = pty.openpty()
    process = subprocess.Popen(command("chat", "-z", "?"), stdin=child, stdout=child, stderr=child)
    os.close(child)
    try:
        assert until_shown(parent, "The first ").endswith("The first ")
        seen.set()
        assert until_shown(parent, "\n").strip() == "and the rest."
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(parent)


def test_text_that_was_taken_back_is_not_printed(admin: FakeAdmin, hermes: Hermes) -> None:
    admin.routes[EVENTS] = Stream(parts=[delta("It is fo"), named("message.reset"), *completion("It is 5.")])
    assert hermes("chat", "-z", "?").stdout == "It is 5.\n"


def test_notices_on_the_way_go_to_stderr(admin: FakeAdmin, hermes: Hermes) -> None:
    parts = [named("notice", text="the model is busy;\ntrying again"), named("something.new", x=1), *completion("ok")]
    admin.routes[EVENTS] = Stream(parts=parts)
    done = hermes("chat", "-z", "?")
    assert (done.stdout, done.stderr) == ("ok\n", "hermes: the model is busy; trying again\n")


def test_an_answer_that_was_cut_off_is_marked(admin: FakeAdmin, hermes: Hermes) -> None:
    admin.routes[EVENTS] = Stream(parts=[delta("It is"), completed("It is", "length")])
    done = hermes("chat", "-z", "?")
    assert (done.returncode, done.stdout) == (0, "It is\n")
    assert done.stderr == "hermes: The answer was cut off at the output limit of the model.\n"
    assert json.loads(hermes("chat", "-z", "?", "--json").stdout)["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            approval(),
            (
                "hermes: terminal needs your approval:\n  rm -rf build\n  it deletes\n"
                "  answer with: hermes approve s1 [once|session|always], or: hermes deny s1\n"
                "  then continue with: hermes chat -r s1\n"
            ),
        ),
        (
            question(),
            (
                "hermes: the turn has a question for you:\n  Which?\n  1. red\n  2. blue\n"
                "  answer with: hermes answer s1 TEXT\n  then continue with: hermes chat -r s1\n"
            ),
        ),
    ],
)
@pytest.mark.parametrize("argv", [["-z", "?"], ["-z", "?", "--json"]])
def test_oneshot_that_needs_an_answer_exits_with_3(
    admin: FakeAdmin, hermes: Hermes, asked: bytes, said: str, argv: list[str]
) -> None:
    admin.routes[EVENTS] = Stream(parts=[delta("Hm."), asked])
    done = hermes("chat", *argv)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", said)
    assert not any(each.path.endswith("/stop") for each in admin.asked)


def test_a_piped_conversation_takes_no_line_for_an_approval(admin: FakeAdmin, hermes: Hermes) -> None:
    admin.routes[EVENTS] = Stream(parts=[delta("Hm."), approval()])
    done = hermes("chat", input="one\no\n")
    assert done.returncode == 3
    assert done.stderr.startswith("hermes: terminal needs your approval:\n")
    assert done.stdout.endswith("\nHm.\n")


@pytest.mark.parametrize("argv", [["-z", "?"], []])
def test_yolo_approves_and_prints_a_notice(admin: FakeAdmin, hermes: Hermes, argv: list[str]) -> None:
    allowed = threading.Event()

    def answer(_: Asked) -> Answer:
        allowed.set()
        return Answer(body={})

    def parts() -> Iterator[bytes]:
        yield approval()
        assert allowed.wait(30)
        yield from completion("Gone.")

    admin.routes |= {EVENTS: Stream(parts=parts()), ANSWER: answer}
    done = hermes("chat", "--yolo", *argv, input="" if argv else "go\n")
    assert done.returncode == 0
    assert "allowed by --yolo: rm -rf build it deletes" in done.stdout + done.stderr
    assert [each.body for each in admin.asked if each.path.endswith("/answer")] == [
        {"answer": "once", "call_id": "c1"}
    ]


def test_a_question_that_takes_too_long_is_stopped(admin: FakeAdmin, hermes: Hermes) -> None:
    stopped = threading.Event()

    def parts() -> Iterator[bytes]:
        yield named("notice", text="so far so good")
        assert stopped.wait(30)

    def stop(_: Asked) -> Answer:
        stopped.set()
        return Answer(body={})

    admin.routes |= {EVENTS: Stream(parts=parts()), "POST /sessions/s1/stop": stop}
    done = hermes("chat", "-z", "?", "--timeout", "3")
    assert (done.returncode, done.stdout) == (124, "")
    assert "no answer within 3 s; the turn was stopped" in done.stderr
    assert admin.asked[-1].body == {"reason": "it took longer than 3 s", "turn_id": "t1"}


@pytest.mark.parametrize(
    ("phase", "hint"),
    [
        (
            "running",
            r"hermes: waiting: a turn has been running for [45]\d s in this session; `hermes stop s1` stops it\n",
        ),
        (
            "waiting",
            r"hermes: waiting: an earlier turn of this session needs an answer: may I\?; use `hermes approve s1`, ",
        ),
    ],
)
def test_waiting_behind_another_turn_is_explained(admin: FakeAdmin, hermes: Hermes, phase: str, hint: str) -> None:
    looked = threading.Event()

    def view(asked: Asked) -> Answer:
        if any(each.path == "/v1/runs" for each in admin.asked):
            looked.set()
        busy = session("s1", phase=phase, running_turn="t0", reason="may I?", since=time.time() - 40)
        return Answer(body={**VIEW, "session": busy})

    def parts() -> Iterator[bytes]:
        yield named("run.accepted")
        assert looked.wait(30)
        yield from completion("At last.")

    admin.routes |= {EVENTS: Stream(parts=parts()), "GET /sessions/s1": view}
    done = hermes("chat", "-r", "s1", "-z", "?")
    assert (done.returncode, done.stdout) == (0, "At last.\n")
    assert re.match(hint, done.stderr)


def test_piped_input_alone_is_a_question_and_none_is_help(admin: FakeAdmin, hermes: Hermes) -> None:
    admin.routes[EVENTS] = Stream(parts=[delta("four"), completed("four")])
    for asked in ("two plus two?\n", "-5 plus 9?\n"):
        assert hermes(input=asked).stdout == "four\n"
        sent = [each.body for each in admin.asked if each.path == "/v1/runs"]
        assert sent[-1]["input"] == asked.strip()
    assert hermes(input="\n").stdout.startswith("usage: hermes")
    assert hermes("chat", "-z", input="two plus two?").stdout == "four\n"
