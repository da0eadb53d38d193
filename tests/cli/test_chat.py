"""`hermes chat`: conversations, single questions, and Ctrl-C."""

from __future__ import annotations

import codecs
import json
import os
import pty
import re
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from hermes.cli.main import main
from tests.cli.conftest import Hermes, command
from tests.cli.fake_admin import (
    EVENTS,
    RUNS,
    Answer,
    FakeAdmin,
    Stream,
    accepted,
    completed,
    completion,
    delta,
    named,
    sse,
)
from tests.cli.test_inspect import VIEW, session

WENT_AWAY = (
    "the daemon stopped in the middle of the answer. The message is stored and the turn resumes when a daemon runs "
    "again. See the answer with: hermes show s1; continue with: hermes chat -r s1"
)


def messages(admin: FakeAdmin) -> list[dict[str, Any]]:
    return [each.body for each in admin.asked if each.path == "/v1/runs"]


def failed(text: str, code: str) -> bytes:
    return named("run.failed", error={"code": code, "message": text})


# ---------------------------------------------------------------- one question


def test_a_single_question_prints_only_the_answer(admin: FakeAdmin, hermes: Hermes) -> None:
    admin.routes[EVENTS] = Stream(parts=completion("Li", "ma."))
    done = hermes("chat", "-z", "What is the capital of Peru?")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Lima.\n", "")
    (asked,) = messages(admin)
    assert asked["input"] == "What is the capital of Peru?"
    assert re.fullmatch(r"\d{8}_\d{6}_[0-9a-f]{8}", asked["session_id"])


@pytest.mark.parametrize(
    ("argv", "piped", "question"),
    [
        (["-z", "Why?"], "a diff\nof two lines\n", "Why?\n\na diff\nof two lines"),
        (["-z", "Why?"], "", "Why?"),
        (["-z", "-"], "all of it\n", "all of it"),
        (["--oneshot=-"], "x" * 1_000_000, "x" * 1_000_000),
    ],
)
def test_question_includes_piped_input(
    admin: FakeAdmin, hermes: Hermes, argv: list[str], piped: str, question: str
) -> None:
    admin.routes[EVENTS] = Stream(parts=completion("ok"))
    assert hermes("chat", *argv, input=piped).stdout == "ok\n"
    assert [each["input"] for each in messages(admin)] == [question]


def test_bytes_that_are_not_text_become_text(admin: FakeAdmin) -> None:
    admin.routes[EVENTS] = Stream(parts=completion("ok"))
    subprocess.run([*command("chat", "-z"), b"a\xff"], input=b"b\xfe\n", check=True, capture_output=True)
    assert messages(admin)[-1]["input"] == "a?\n\nb\N{REPLACEMENT CHARACTER}"


def test_a_question_can_be_answered_in_json_within_a_session(admin: FakeAdmin, hermes: Hermes) -> None:
    admin.routes["GET /sessions/s0"] = Answer(body=VIEW)
    admin.routes[EVENTS] = Stream(parts=[named("session", session_id="s2"), *completion("Li", "ma.")])
    done = hermes("chat", "-r", "s0", "-z", "?", "--json")
    assert json.loads(done.stdout) == {
        "session_id": "s2",
        "text": "Lima.",
        "model": "offline",
        "finish_reason": "stop",
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        "notice": None,
    }
    assert [each["session_id"] for each in messages(admin)] == ["s1"]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Answer(status=429, body={"error": {"message": "Too much waits."}}), "Too much waits."),
        (
            Stream(parts=[delta("Li"), failed("The model failed.", "upstream_error")]),
            "The model failed. (to try again: hermes chat -r s1 -z /retry)",
        ),
    ],
)
def test_a_question_without_an_answer_fails(
    admin: FakeAdmin, hermes: Hermes, answer: Answer | Stream, problem: str
) -> None:
    admin.routes[RUNS if isinstance(answer, Answer) else EVENTS] = answer
    done = hermes("chat", "-z", "?")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"hermes: {problem}\n")


def test_a_notice_goes_with_the_answer_but_not_into_it(admin: FakeAdmin, hermes: Hermes) -> None:
    admin.routes |= {
        RUNS: accepted(notice="The earlier session\nis suspended."),
        EVENTS: Stream(parts=completion("Lima.")),
    }
    done = hermes("chat", "-z", "?")
    assert (done.stdout, done.stderr) == ("Lima.\n", "hermes: The earlier session is suspended.\n")
    done = hermes("chat", "-z", "?", "--json")
    assert (json.loads(done.stdout)["notice"], done.stderr) == ("The earlier session\nis suspended.", "")


@pytest.mark.parametrize("argv", [["-z", "-"], []])
def test_a_nul_is_refused_in_words_of_the_terminal(admin: FakeAdmin, hermes: Hermes, argv: list[str]) -> None:
    done = hermes("chat", *argv, input="a\0b\n")
    assert done.returncode == 1
    assert done.stderr.strip() == "hermes: the message contains a NUL character"


def test_question_whose_daemon_went_away_continues_after_the_last_event(admin: FakeAdmin, hermes: Hermes) -> None:
    started = sse({"attempt": 1}, "run.started", place="s1:3")
    streams = iter([Stream(parts=[started, delta("Li")], cut=True), Stream(parts=completion("Lima."))])
    admin.routes[EVENTS] = lambda _: next(streams)
    done = hermes("chat", "-z", "?")
    assert (done.returncode, done.stdout) == (0, "Lima.\n")
    lost, back = done.stderr.splitlines()
    assert lost == f"hermes: {WENT_AWAY}. Waiting up to 60 s for a daemon; Ctrl-C exits"
    assert back == "hermes: the daemon is back"
    assert [each.headers.get("Last-Event-ID") for each in admin.asked if each.path.endswith("/events")] == [
        None,
        "s1:3",
    ]
    assert len(messages(admin)) == 1


def test_message_that_was_never_confirmed_is_sent_once_more(admin: FakeAdmin, hermes: Hermes) -> None:
    admin.routes[RUNS] = Stream(parts=[], cut=True)
    done = hermes("chat", "-z", "?")
    assert done.returncode == 1
    assert "may not be stored (see: hermes show " in done.stderr
    keys = [each.headers["Idempotency-Key"] for each in admin.asked if each.path == "/v1/runs"]
    assert len(keys) == 2
    assert len(set(keys)) == 1


@pytest.mark.parametrize("question", ["", "  ", "-"])
def test_an_empty_question_is_refused(admin: FakeAdmin, hermes: Hermes, question: str) -> None:
    done = hermes("chat", "-z", question, input="\n")
    assert (done.returncode, done.stderr) == (1, "hermes: the question is empty\n")


def test_an_unknown_session_cannot_be_resumed(admin: FakeAdmin, hermes: Hermes) -> None:
    done = hermes("chat", "-r", "gone", "-z", "?")
    assert (done.returncode, done.stderr) == (
        1,
        "hermes: there is no session with the id or title gone; `hermes sessions` lists them\n",
    )


# ---------------------------------------------------------------- a conversation


def test_lines_are_answered_one_by_one(admin: FakeAdmin, hermes: Hermes) -> None:
    answers = iter([completion("One."), completion("Two.\x1b[2J")])
    confirmed = iter([accepted(), accepted("s9", notice="This is a fresh session.")])
    admin.routes |= {RUNS: lambda _: next(confirmed), EVENTS: lambda _: Stream(parts=next(answers))}
    done = hermes("chat", input="first\n\n/dance now\n/etc/passwd is gone\n/quit\nnever said\n")
    first, *rest = done.stdout.splitlines()
    assert re.fullmatch(r"Session \d{8}_\d{6}_[0-9a-f]{8}\. Model: offline\. /quit exits\.", first)
    assert rest == [
        "One.",
        "Two.\N{REPLACEMENT CHARACTER}[2J",
        "(This is a fresh session.)",
        "Continue with: hermes chat -r s9",
    ]
    assert (
        done.stderr
        == "hermes: the running daemon does not support `commands`: it is another version; run `hermes restart`\n"
    )
    assert done.returncode == 1
    asked = messages(admin)
    assert [each["input"] for each in asked] == ["first", "/etc/passwd is gone"]
    assert asked[1]["session_id"] == "s1"


def test_a_conversation_can_be_resumed(admin: FakeAdmin, hermes: Hermes) -> None:
    admin.routes["GET /sessions/s0"] = Answer(body=VIEW)
    done = hermes("chat", "-r", "s0", input="")
    assert done.stdout.splitlines() == [
        "you: hello [b]there[/b]\N{REPLACEMENT CHARACTER}]0;owned\N{REPLACEMENT CHARACTER}",
        "s0 continues as s1.",
        "Session s1 resumed. Model: offline. /quit exits.",
        "Continue with: hermes chat -r s1",
    ]


@pytest.mark.parametrize("argv", [("-r",), ("chat", "-r"), ("-c",)])
def test_the_last_conversation_is_resumed_without_an_id(
    admin: FakeAdmin, hermes: Hermes, argv: tuple[str, ...]
) -> None:
    admin.routes["GET /sessions/s0"] = Answer(body=VIEW)
    admin.routes["GET /api/sessions"] = Answer(body={"sessions": [session("s0")], "total": 1})
    assert "Session s1 resumed." in hermes(*argv, input="").stdout


@pytest.mark.parametrize(
    ("phase", "opening"),
    [
        (
            "suspended",
            "Session s1 is suspended (lunch {x}): the next message starts a new session; `hermes resume s1`",
        ),
        ("ended", "Session s1 has ended (lunch {x}): the next message starts a new session."),
        ("running", "Session s1 is still answering; your next message is queued."),
        ("waiting", "Session s1 waits for you: lunch {x}."),
        ("dreaming", "Session s1 is dreaming (lunch {x}); your next message is queued."),
        (
            "resume_pending",
            "Session s1 was interrupted (lunch {x}) and resumes automatically; your next message is queued",
        ),
    ],
)
def test_greeting_of_a_session_that_is_not_idle(admin: FakeAdmin, hermes: Hermes, phase: str, opening: str) -> None:
    view = {**VIEW, "session": session("s1", phase=phase, reason="lunch {x}"), "transcript": []}
    admin.routes["GET /sessions/s1"] = Answer(body=view)
    done = hermes("chat", "-r", "s1", input="")
    assert done.stdout.startswith(opening)


@pytest.mark.parametrize("leave", ["/quit", "/exit", "/q", "/QUIT"])
def test_exit_commands(admin: FakeAdmin, hermes: Hermes, leave: str) -> None:
    done = hermes("chat", input=f"/help\n{leave}\nnever said\n")
    assert "/quit, /exit, /q    exit" in done.stdout
    assert all(asked.method == "GET" for asked in admin.asked)


def test_a_daemon_that_goes_away_ends_the_conversation(admin: FakeAdmin, hermes: Hermes) -> None:
    admin.routes["GET /sessions/s1"] = Answer(body={**VIEW, "transcript": []})
    admin.routes[EVENTS] = Stream(parts=[delta("It begins")], cut=True)
    done = hermes("chat", "-r", "s1", input="one\ntwo\n")
    assert (done.returncode, done.stderr) == (1, f"hermes: {WENT_AWAY}\n")
    assert done.stdout.endswith("\nIt begins\n")


def test_empty_chat_prints_no_resume_hint(admin: FakeAdmin, hermes: Hermes) -> None:
    done = hermes("chat", input="/quit\n")
    assert len(done.stdout.splitlines()) == 1


def test_a_refused_message_does_not_end_the_conversation(admin: FakeAdmin, hermes: Hermes) -> None:
    answers = [Answer(status=429, body={"error": {"message": "Too much."}}), accepted()]
    admin.routes |= {RUNS: lambda _: answers.pop(0), EVENTS: Stream(parts=completion("ok"))}
    done = hermes("chat", input="one\ntwo\n")
    assert done.stderr == "hermes: Too much.\n"
    assert "\nok\n" in done.stdout
    assert done.returncode == 1


# ---------------------------------------------------------------- on a terminal


class Terminal:
    def __init__(self, descriptor: int, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._descriptor = descriptor
        self._decoder = codecs.getincrementaldecoder("utf-8")()  # a character may come in two pieces
        self._seen = ""

    def expect(self, text: str) -> str:
        """Everything up to and with the text; what comes after waits for the next call."""
        assert self.comes(text, within_s=50), self._seen
        before, _, self._seen = self._seen.partition(text)
        return before + text

    def comes(self, text: str, *, within_s: float) -> bool:
        deadline = time.monotonic() + within_s
        while text not in self._seen:
            if not select.select([self._descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return False
            self._seen += self._decoder.decode(os.read(self._descriptor, 4096))
        return True

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def press_ctrl_c(self) -> None:
        self.process.send_signal(signal.SIGINT)

    # A signal in the instant between what is shown and the wait for a key is only seen at the next one.

    def press_ctrl_c_until(self, text: str) -> None:
        self.press_ctrl_c()
        while not self.comes(text, within_s=5):
            self.press_ctrl_c()
        self.expect(text)

    def press_ctrl_c_until_it_leaves(self) -> None:
        while self.process.poll() is None:
            self.press_ctrl_c()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(10)


@contextmanager
def terminal(*argv: str, cwd: Path | None = None, **environ: str) -> Iterator[Terminal]:
    parent, child = pty.openpty()
    with subprocess.Popen(
        command(*argv, *(("--plain",) if argv[:1] == ("chat",) else ())),
        stdin=child,
        stdout=child,
        stderr=child,
        start_new_session=True,
        cwd=cwd or Path.home(),  # where nobody is asked whether the agent may work there
        env={**os.environ, "TERM": "dumb", **environ},
    ) as process:
        os.close(child)
        try:
            yield Terminal(parent, process)
            process.wait(30)
        finally:
            process.kill()
            os.close(parent)


def test_ctrl_c_stops_an_answer_and_keeps_the_chat(admin: FakeAdmin) -> None:
    stopped = threading.Event()

    def endless() -> Iterator[bytes]:
        yield delta("It begins")
        while not stopped.wait(0.01):
            yield b": ping\n\n"

    answers = iter([endless(), iter(completion("Fine."))])
    admin.routes[EVENTS] = lambda _: Stream(parts=next(answers))

    def stop(_: object) -> Answer:
        stopped.set()
        return Answer(body={"session": VIEW["session"]})

    with terminal("chat") as person:
        admin.routes["POST /sessions/s1/stop"] = stop
        person.expect("you> ")
        person.type("tell me a story\n")
        person.expect("It begins")
        person.press_ctrl_c()
        person.expect("(stopped)")
        person.expect("you> ")
        person.type("how are you?\n")
        person.expect("Fine.")
        person.expect("you> ")
        person.type("\x04")
        person.expect("Continue with: hermes chat -r s1")
    assert person.process.returncode == 0
    assert stopped.is_set()


def test_ctrl_c_at_the_prompt_leaves(admin: FakeAdmin) -> None:
    with terminal("chat") as person:
        person.expect("you> ")
        person.press_ctrl_c_until_it_leaves()
    assert person.process.returncode == 0


def test_single_question_streams_its_answer_on_a_terminal(admin: FakeAdmin) -> None:
    seen = threading.Event()

    def parts() -> Iterator[bytes]:
        yield delta("It begins")
        assert seen.wait(50)
        yield from (delta(" and ends."), completed("It begins and ends."))

    admin.routes[EVENTS] = Stream(parts=parts())
    with terminal("chat", "-z", "?") as person:
        person.expect("It begins")
        seen.set()
        person.expect(" and ends.")
    assert person.process.returncode == 0


def test_ctrl_c_stops_a_single_question(admin: FakeAdmin) -> None:
    stopped = threading.Event()

    def endless() -> Iterator[bytes]:
        yield named("notice", text="thinking")
        yield delta("It begins")
        while not stopped.wait(0.01):
            yield b": ping\n\n"

    admin.routes[EVENTS] = Stream(parts=endless())
    admin.routes["GET /sessions/s0"] = Answer(body=VIEW)

    def stop(_: object) -> Answer:
        stopped.set()
        return Answer(body={})

    admin.routes["POST /sessions/s1/stop"] = stop
    with subprocess.Popen(
        command("chat", "-r", "s0", "-z", "?"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"hermes: thinking\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    told = b"hermes: the turn was stopped; the question is stored (see: hermes show s1)\n"
    assert (process.returncode, out, err) == (130, b"", told)
    assert stopped.is_set()


def test_json_is_for_single_questions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat", "--json"]) == 2
    assert "--json needs -z" in capsys.readouterr().err
