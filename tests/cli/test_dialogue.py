"""`hermes chat` on a terminal: tool lines, approvals, questions, commands and pastes."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Hermes
from tests.cli.fake_admin import (
    EVENTS,
    RUNS,
    Answer,
    Asked,
    FakeAdmin,
    Stream,
    accepted,
    approval,
    completed,
    completion,
    delta,
    named,
    question,
    tool_began,
    tool_ended,
)
from tests.cli.test_chat import messages, terminal
from tests.cli.test_inspect import VIEW, session

ANSWER = "POST /api/sessions/s1/answer"
COMMANDS = "POST /api/sessions/s1/commands"
API_VIEW = "GET /api/sessions/s1"
WAITS = {**VIEW, "session": session("s1", phase="waiting"), "transcript": []}


def pending(call: str = "c1", turn: str = "t1", choices: tuple[str, ...] = ("once", "deny")) -> dict[str, object]:
    asked = {"kind": "approval", "call_id": call, "turn_id": turn, "question": "rm -rf build", "choices": choices}
    return {**WAITS, "pending": asked}


@pytest.fixture
def asking(admin: FakeAdmin) -> list[bytes]:
    """A turn that asks the first of these and goes on when it is answered."""
    answered = threading.Event()
    asked: list[bytes] = []

    def answer(_: Asked) -> Answer:
        answered.set()
        return Answer(body={})

    def parts() -> Iterator[bytes]:
        yield from (named("run.started", attempt=1), delta("Hm."), named("message.completed", text="Hm."), asked[0])
        while not answered.wait(0.01):
            yield b": ping\n\n"
        yield named("answered", call_id="c1")
        if b"approval" not in asked[0]:
            yield tool_ended("clarify", call="c2")  # not shown: it did no work
        yield completed("Done.")

    def view(_: Asked) -> Answer:
        call = "c1" if b"approval" in asked[0] else "c2"
        return Answer(body={**WAITS, "pending": None} if answered.is_set() else pending(call))

    admin.routes |= {EVENTS: Stream(parts=parts()), ANSWER: answer, COMMANDS: answer, API_VIEW: view}
    return asked


def answers(admin: FakeAdmin) -> list[object]:
    return [each.body for each in admin.asked if each.path.endswith("/answer")]


def test_tools_are_lines_with_outcome_and_duration(admin: FakeAdmin, hermes: Hermes) -> None:
    parts = [
        *(delta("Let me look."), tool_began(), named("tool.progress", call_id="c1", text="50 %"), tool_ended()),
        *(tool_began("read_file", "read_file: x", "c2"), tool_ended("read_file", "error", "c2", 3.0)),
        *completion("So."),
    ]
    admin.routes[EVENTS] = Stream(parts=parts)
    lines = hermes("chat", input="?\n").stdout.splitlines()
    assert lines[1:-1] == ["Let me look.", "[terminal: echo hi (250ms)]", "[read_file: x (error, 3s)]", "So."]


def test_notices_are_printed_on_their_own_lines(admin: FakeAdmin, hermes: Hermes) -> None:
    parts = [named("notice", text="trying again"), delta("It is"), completed("It is", "length")]
    admin.routes[EVENTS] = Stream(parts=parts)
    lines = hermes("chat", input="?\n").stdout.splitlines()
    assert lines[1:-1] == ["(trying again)", "It is", "(The answer was cut off at the output limit of the model.)"]


@pytest.mark.parametrize(
    ("typed", "sent"),
    [("o", "once"), ("S", "session"), ("always", "always"), ("d", "deny"), ("what\n\nyes", "once"), ("no", "deny")],
)
def test_an_approval_is_asked_for_at_the_terminal(
    admin: FakeAdmin, asking: list[bytes], typed: str, sent: str
) -> None:
    asking.append(approval())
    with terminal("chat") as person:
        person.expect("you> ")
        person.type("go\n")
        person.expect("Hm.\r\nterminal needs your approval:\r\n  rm -rf build\r\n  it deletes\r\n")
        person.expect("[o]nce  [s]ession  [a]lways  [d]eny> ")
        person.type(f"{typed}\n")
        person.expect("Done.")
        person.expect("you> ")
        person.type("\x04")
    assert person.process.returncode == 0
    assert answers(admin) == [{"answer": sent, "call_id": "c1"}]


@pytest.mark.parametrize(("typed", "sent"), [("2", "blue"), ("green, rather", "green, rather"), ("3\n1", "red")])
def test_a_question_is_answered_by_number_or_in_words(
    admin: FakeAdmin, asking: list[bytes], typed: str, sent: str
) -> None:
    asking.append(question())
    with terminal("chat") as person:
        person.expect("you> ")
        person.type("go\n")
        person.expect("the turn has a question for you:\r\n  Which?\r\n  1. red\r\n  2. blue\r\n  answer> ")
        person.type(f"{typed}\n")
        assert "clarify" not in person.expect("Done.")
        person.expect("you> ")
        person.type("\x04")
    assert answers(admin) == [{"answer": sent, "call_id": "c2"}]


def test_leaving_an_approval_leaves_the_turn_waiting(admin: FakeAdmin, asking: list[bytes]) -> None:
    asking.append(approval())
    with terminal("chat") as person:
        person.expect("you> ")
        person.type("go\n")
        person.expect("[d]eny> ")
        person.type("\x04")
        person.expect("answer with: hermes approve s1")
    assert person.process.returncode == 3


def test_pasted_lines_are_one_message(admin: FakeAdmin) -> None:
    admin.routes[EVENTS] = lambda _: Stream(parts=completion("Read."))
    with terminal("chat") as person:
        person.expect("you> ")
        person.type("first line\nsecond line\n\nlast line\n")
        person.expect("Read.")
        person.expect("you> ")
        person.type("\x04")
    assert [each["input"] for each in messages(admin)] == ["first line\nsecond line\n\nlast line"]


# ---------------------------------------------------------------- commands


def test_commands_go_to_the_daemon(admin: FakeAdmin, hermes: Hermes) -> None:
    admin.routes["GET /sessions/s1"] = Answer(body={**VIEW, "transcript": []})
    replies = [
        Answer(body={"ok": True, "text": "It is idle.", "session_id": "s1", "turn_id": None}),
        Answer(body={"ok": False, "text": "There is no command /dance.", "session_id": "s1", "turn_id": None}),
        Answer(body={"ok": True, "text": "A fresh one.", "session_id": "s2", "turn_id": None}),
    ]
    admin.routes[COMMANDS] = lambda _: replies.pop(0)
    admin.routes |= {RUNS: accepted("s2"), EVENTS: Stream(parts=completion("Hello."))}
    done = hermes("chat", "-r", "s1", input="/status\n/Dance now\n/new\nhello\n/help status\n")
    assert done.stdout.splitlines()[1:] == [
        *("It is idle.", "There is no command /dance.", "A fresh one.", "Hello.", "Continue with: hermes chat -r s2"),
    ]
    sent = [each for each in admin.asked if each.method == "POST"]
    assert [each.body.get("text") for each in sent] == ["/status", "/Dance now", "/new", None, "/help status"]
    assert sent[3].body["session_id"] == "s2"


def test_yes_after_a_command_that_asks_first_confirms_it(admin: FakeAdmin, hermes: Hermes) -> None:
    asks = {"ok": True, "text": "Sure?", "session_id": "s1", "turn_id": None, "choices": ["yes, Rome", "no"]}
    done = {"ok": True, "text": "A fresh one.", "session_id": "s2", "turn_id": None}
    admin.routes[COMMANDS] = lambda asked: Answer(body=asks if asked.body["text"] == "/new Rome" else done)
    admin.routes["GET /sessions/s1"] = Answer(body={**VIEW, "transcript": []})
    hermes("chat", "-r", "s1", input="/new Rome\nyes\n")
    sent = [each.body.get("text") for each in admin.asked if each.method == "POST"]
    assert sent == ["/new Rome", "/new yes, Rome"]


@pytest.fixture
def no_session(admin: FakeAdmin) -> None:
    """The daemon knows no session, and takes commands outside of one."""
    problem = {"error": {"message": "there is no session x", "code": "session_not_found"}}
    replies = {
        "/status": {"ok": False, "text": "There is no conversation yet.", "session_id": None, "turn_id": None},
        "/new": {"ok": True, "text": "A fresh one.", "session_id": "s5", "turn_id": None},
    }
    admin.routes["POST /api/commands"] = lambda asked: Answer(body=replies[asked.body["text"]])
    admin.answer = lambda asked: (  # type: ignore[method-assign]
        Answer(status=404, body=problem)
        if asked.path.startswith("/api/sessions/")
        else FakeAdmin.answer(admin, asked)
    )


@pytest.mark.usefixtures("no_session")
def test_a_command_before_the_first_message_needs_no_session(hermes: Hermes) -> None:
    done = hermes("chat", input="/status\n/new\n")
    assert done.stdout.splitlines()[1:] == [
        *("There is no conversation yet.", "A fresh one.", "Continue with: hermes chat -r s5"),
    ]


@pytest.mark.usefixtures("no_session")
def test_a_single_command_that_is_refused_fails(hermes: Hermes) -> None:
    done = hermes("chat", "-z", "/status")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "hermes: There is no conversation yet.\n")
    done = hermes("chat", "-z", "/new")
    assert (done.returncode, done.stdout) == (0, "A fresh one.\n")


def test_the_turn_that_a_command_begins_is_followed(admin: FakeAdmin, hermes: Hermes) -> None:
    running = {**VIEW, "session": session("s1", running_turn="t7"), "transcript": []}
    admin.routes["GET /sessions/s1"] = Answer(body=running)
    admin.routes[COMMANDS] = Answer(body={"ok": True, "text": "Again.", "session_id": "s1", "turn_id": "t7"})
    parts = [tool_began(summary="ls"), tool_ended(took_s=2.0), *completion("Here.")]
    admin.routes[EVENTS] = Stream(parts=parts)
    done = hermes("chat", "-r", "s1", input="/retry\n")
    assert done.stdout.splitlines()[1:-1] == ["Again.", "[terminal: ls (2s)]", "Here."]


def test_help_lists_commands_of_the_daemon(admin: FakeAdmin, hermes: Hermes) -> None:
    menu = [
        {"name": "undo", "usage": "/undo [n]", "help": "Take back the last turn", "group": "Turn"},
        {"name": "reasoning", "usage": "/reasoning [none|minimal|low|medium]", "help": "How hard to think"},
    ]
    admin.routes["GET /api/commands"] = Answer(body={"commands": menu})
    out = hermes("chat", input="/help\n").stdout
    assert "/quit, /exit, /q    exit" in out
    assert "\nTurn:\n  /undo [n]                    Take back the last turn\n" in out
    assert "  /reasoning [none|minimal|low|medium]\n                               How hard to think\n" in out


# ---------------------------------------------------------------- in the middle of something


def test_a_command_at_an_approval_is_a_command(admin: FakeAdmin, asking: list[bytes]) -> None:
    asking.append(approval())
    with terminal("chat") as person:
        person.expect("you> ")
        person.type("go\n")
        person.expect("[d]eny> ")
        person.type("maybe\n")
        person.expect("Type once, session, always or deny; yes and no work too.")
        person.type("/approve session\n")
        person.expect("Done.")
        person.expect("you> ")
        person.type("\x04")
    assert answers(admin) == []
    assert [each.body for each in admin.asked if each.path.endswith("/commands")] == [{"text": "/approve session"}]


def test_resumed_session_shows_its_open_question(admin: FakeAdmin) -> None:
    answered = threading.Event()

    def answer(_: Asked) -> Answer:
        answered.set()
        return Answer(body={})

    def parts() -> Iterator[bytes]:
        yield from (delta("Hm."), approval("rm -rf build", choices=("once", "deny")))
        while not answered.wait(0.01):
            yield b": ping\n\n"
        yield from (named("answered", call_id="c1"), completed("Done."))

    views = {"GET /sessions/s1": Answer(body=WAITS), API_VIEW: Answer(body=pending())}
    admin.routes |= {**views, EVENTS: lambda _: Stream(parts=parts()), ANSWER: answer}
    admin.routes["GET /sessions/s1"] = Answer(body={**WAITS, "session": session("s1", running_turn="t1")})
    with terminal("chat", "-r", "s1") as person:
        person.expect("terminal needs your approval:\r\n  rm -rf build\r\n  [o]nce  [d]eny> ")
        person.type("always\n")
        person.expect("Type once or deny;")
        person.type("y\n")
        person.expect("Done.")
        person.expect("you> ")
        person.type("\x04")
    assert answers(admin) == [{"answer": "once", "call_id": "c1"}]


def test_a_conversation_on_a_terminal_outlives_its_daemon(admin: FakeAdmin) -> None:
    streams = iter(
        [
            Stream(parts=[delta("It"), named("notice", text="thinking")], cut=True),
            Stream(parts=completion("It ends.")),
        ]
    )
    admin.routes[EVENTS] = lambda _: next(streams)
    with terminal("chat") as person:
        person.expect("you> ")
        person.type("one\n")
        person.expect("stopped in the middle of the answer")
        person.expect("(the daemon is back)")
        person.expect("It ends.")
        person.expect("you> ")
        person.type("\x04")
    assert person.process.returncode == 0


def test_call_denied_by_the_rules_is_shown_as_blocked(admin: FakeAdmin, hermes: Hermes) -> None:
    admin.routes[EVENTS] = Stream(parts=[tool_ended(outcome="denied"), *completion("No.")])
    assert "[terminal: echo hi (blocked)]" in hermes("chat", input="?\n").stdout
