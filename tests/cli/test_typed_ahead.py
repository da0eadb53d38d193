"""Messages typed while an answer runs."""

from __future__ import annotations

import pytest

from hermes.cli.chat.conversation import Conversation, SubmittedTurn
from hermes.cli.chat.typed_ahead import Begun, TypedAhead
from hermes.cli.client import AdminClient
from hermes.config.home import Home
from tests.cli.fake_admin import Answer, FakeAdmin, Stream, accepted, completion
from tests.cli.test_chat import COMPLETIONS

Said = pytest.CaptureFixture[str]
STOPPING = Answer(status=503, body={"error": {"message": "It stops.", "code": "stopping"}})


@pytest.fixture
def ahead(home: Home) -> TypedAhead:
    return TypedAhead(Conversation(AdminClient(home.socket), "s1"))


@pytest.mark.parametrize("daemon", ["none", "stopping"])
def test_line_is_kept_without_a_daemon(ahead: TypedAhead, home: Home, capsys: Said, daemon: str) -> None:
    if daemon == "none":
        ahead.send("two")
    else:
        with FakeAdmin(home.socket) as admin:
            admin.routes[COMPLETIONS] = STOPPING
            ahead.send("two")
    assert capsys.readouterr().out == "(kept until a daemon is back: two)\n"
    assert ahead.close() == ["two"]
    assert ahead.take() == "two"


def test_a_line_that_was_never_confirmed_is_not_called_stored(
    ahead: TypedAhead, admin: FakeAdmin, capsys: Said
) -> None:
    admin.routes[COMPLETIONS] = Stream(parts=[], cut=True)
    ahead.send("two")
    assert "may not be stored (see: hermes show s1" in capsys.readouterr().err
    assert not ahead


def test_line_typed_before_a_question_is_sent_after_the_answer(
    ahead: TypedAhead, admin: FakeAdmin, capsys: Said
) -> None:
    admin.routes[COMPLETIONS] = Stream(parts=[accepted("t2", "queued"), *completion("ok")])
    ahead.keep("two")
    assert not ahead
    assert admin.asked == []
    ahead.send_kept()
    assert capsys.readouterr().out.splitlines() == [
        "(sent after your answer: two)",
        "(queued, answered after this turn: two)",
    ]
    sent = ahead.take()
    assert isinstance(sent, SubmittedTurn)
    assert (sent.text, sent.turn) == ("two", "t2")
    sent.feed.close()
    assert ahead.close() == []


def test_a_line_that_became_the_answer_to_a_question_has_none_of_its_own(
    ahead: TypedAhead, admin: FakeAdmin, capsys: Said
) -> None:
    admin.routes[COMPLETIONS] = Stream(parts=[accepted("t2", "answer"), *completion("ok")])
    ahead.send("blue")
    assert capsys.readouterr().out == "(taken as the answer to the question: blue)\n"
    assert not ahead


def test_after_a_restart_the_next_daemon_is_asked_for_the_answer(ahead: TypedAhead, admin: FakeAdmin) -> None:
    parts = iter([accepted("t2", "queued"), accepted("t3", "steering")])
    admin.routes[COMPLETIONS] = lambda _: Stream(parts=[next(parts)], cut=True)
    ahead.send("two")
    ahead.send("three")
    ahead.close_streams()
    assert [ahead.take(), ahead.take()] == [
        Begun(turn="t2", merges=False, text="two"),
        Begun(turn="t3", merges=True, text="three"),
    ]
