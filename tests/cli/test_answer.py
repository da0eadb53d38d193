"""`hermes approve`, `deny` and `answer`."""

from __future__ import annotations

import json

import pytest

from hermes.cli.main import main
from tests.cli.fake_admin import Answer, FakeAdmin, listing
from tests.cli.test_inspect import session

ANSWER = "POST /api/sessions/s1/answer"


@pytest.mark.parametrize(
    ("argv", "sent", "said"),
    [
        (
            ["approve", "s1"],
            "once",
            "Allowed once in s1. The turn continues; `hermes show s1` shows its answer.\n",
        ),
        (["approve", "s1", "session"], "session", "Allowed in s1 until the session ends. The turn continues"),
        (
            ["approve", "-", "always"],
            "always",
            "Allowed permanently in all sessions, requested by s1. The turn continues",
        ),
        (["deny", "s1"], "deny", "Denied in s1. The turn continues"),
        (["answer", "s1", "the", "red one"], "the red one", "Answered in s1. The turn continues"),
    ],
)
def test_answer_is_sent_to_the_waiting_turn(
    admin: FakeAdmin, capsys: pytest.CaptureFixture[str], argv: list[str], sent: str, said: str
) -> None:
    admin.routes["GET /api/sessions"] = listing(session("s1"))
    admin.routes[ANSWER] = Answer(body={"session_id": "s1"})
    assert main(argv) == 0
    assert capsys.readouterr().out.startswith(said)
    assert admin.asked[-1].body == {"answer": sent}
    assert main([*argv, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"session_id": "s1"}


def test_answer_to_a_session_that_does_not_wait_is_refused(
    admin: FakeAdmin, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = {"error": {"message": "nothing waits for an answer", "code": "not_waiting"}}
    admin.routes[ANSWER] = Answer(status=409, body=problem)
    assert main(["approve", "s1"]) == 1
    assert capsys.readouterr() == ("", "hermes: nothing waits for an answer\n")


@pytest.mark.parametrize(("argv", "verb"), [(["approve", "s1"], "answer"), (["compress", "s1"], "compress")])
def test_unsupported_endpoint_is_reported_as_another_version(
    admin: FakeAdmin, capsys: pytest.CaptureFixture[str], argv: list[str], verb: str
) -> None:
    assert main(argv) == 1
    said = f"hermes: the running daemon does not support `{verb}`: it is another version; run `hermes restart`\n"
    assert capsys.readouterr().err == said


def test_there_are_three_ways_to_allow(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["approve", "s1", "often"]) == 2
    assert "invalid choice: 'often'" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["approve", "deny"])
@pytest.mark.parametrize(("choices", "listed"), [(["red", "blue"], " (red, blue)"), ([], "")])
def test_a_question_is_neither_approved_nor_denied(
    admin: FakeAdmin, capsys: pytest.CaptureFixture[str], verb: str, choices: list[str], listed: str
) -> None:
    pending = {"kind": "question", "call_id": "c1", "question": "Which?", "choices": choices}
    admin.routes["GET /api/sessions/s1"] = Answer(body={"pending": pending})
    admin.routes[ANSWER] = Answer(body={"session_id": "s1"})
    assert main([verb, "s1"]) == 1
    said = f"hermes: this is a question, not an approval: use `hermes answer s1 TEXT`{listed}\n"
    assert capsys.readouterr() == ("", said)
    assert admin.asked[-1].method == "GET"
    assert main(["answer", "s1", "red"]) == 0


def test_a_permission_is_given_to_the_call_that_was_asked_about(admin: FakeAdmin) -> None:
    pending = {"kind": "approval", "call_id": "c1", "question": "May I?", "choices": ["once", "deny"]}
    admin.routes["GET /api/sessions/s1"] = Answer(body={"pending": pending})
    admin.routes[ANSWER] = Answer(body={"session_id": "s1"})
    assert main(["approve", "s1"]) == 0
    assert admin.asked[-1].body == {"answer": "once", "call_id": "c1"}
