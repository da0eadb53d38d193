"""What the outside sees of sessions and events."""

from __future__ import annotations

from dataclasses import replace

from hermes.adapters.http import presentation
from hermes.domain import events
from hermes.domain.ids import Seq, SessionId, TurnId
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.read.views import StoredMessage
from hermes.domain.session.state import Phase, Turn
from hermes.domain.source import Place
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.turn.usage import Usage
from tests.support.fakes import NOW, a_dead_letter, a_session, encoded


def test_a_session_is_shown_with_its_work_and_its_last_failure() -> None:
    turn = Turn(id=TurnId("t1"), accepted_at=NOW)
    session = a_session(
        "s",
        phase=Phase.RUNNING,
        turn=turn,
        queue=(turn, turn),
        usage=Usage(prompt_tokens=1, completion_tokens=2),
        last_failure=Failure(kind=FailureKind.TIMEOUT, message="late", retry_after_s=1.5),
        parent=SessionId("p"),
    )
    assert presentation.session(session) == {
        "id": "s",
        "key": "agent:main:api:dm:s",
        "title": "",
        "phase": "running",
        "reason": "new",
        "since": NOW,
        "created_at": NOW,
        "active_at": NOW,
        "platform": "api",
        "parent": "p",
        "successor": None,
        "running_turn": "t1",
        "role": None,
        "queued": 2,
        "compressing": False,
        "interruptions": 0,
        "messages": 0,
        "turns": 0,
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "cached_tokens": 0, "cost_usd": 0.0},
        "context_tokens": 0,
        "last_failure": {
            "kind": "timeout",
            "message": "late",
            "retry_after_s": 1.5,
            "address": "",
            "cause": "",
            "status": 0,
            "stop": "",
            "by": "",
        },
        "child": None,
    }


def test_a_transcript_shows_who_said_what_when() -> None:
    stored = StoredMessage(seq=Seq(3), at=NOW, turn=TurnId("t"), message=encoded("user", "Hi"))
    (message,) = presentation.transcript([stored])
    assert message == {"seq": 3, "at": NOW, "turn": "t", "role": "user", "note": False, "content": "Hi"}


def test_a_dead_letter_is_listed_without_its_text() -> None:
    shown = presentation.dead_letter(a_dead_letter("d1", "s"))
    kept = {"id": "d1", "session": "s", "turn": "turn-d1", "problem": "ValueError: no", "at": NOW}
    assert shown == {**kept, "kind": "message", "place": None}


def test_undelivered_message_is_listed_with_its_place() -> None:
    place = Place(platform="telegram", chat="42", thread="7")
    outgoing = OutboxMessage(id="reply:t", kind=OutboxKind.REPLY, place=place, text="private", at=NOW)
    shown = presentation.dead_letter(replace(a_dead_letter("reply:t", "s"), undelivered=outgoing))
    assert shown["kind"] == "reply"
    assert shown["place"] == {"platform": "telegram", "chat": "42", "thread": "7", "message": ""}
    assert "private" not in str(shown)


def test_half_a_surrogate_pair_from_a_model_is_not_an_error() -> None:
    assert presentation.encode({"text": "a\ud800b"}) == b'{"text":"a?b"}'


def test_enumerations_and_nested_values_become_plain() -> None:
    event = events.TurnGaveUp(
        session=SessionId("s"), turn=TurnId("t"), failure=Failure(kind=FailureKind.POLICY, message="no")
    )
    encoded_event = presentation.encode(presentation.plain(event))
    assert encoded_event == (
        b'{"session":"s","turn":"t","failure":{"kind":"policy","message":"no","retry_after_s":null,"address":"","cause":"","status":0,"stop":"","by":""}}'
    )
