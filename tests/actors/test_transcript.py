"""What of a transcript people said, and what the system told."""

from __future__ import annotations

import json

from hermes.actors.transcript import stored_messages
from hermes.records import ContextCarried, LogEntry, MessageReceived, Record, TurnStarted
from hermes.types import EncodedMessage, Phase, Preferences, Seq, Session, SessionId, SessionKey, Source, TurnId

SESSION = Session(
    id=SessionId("s"),
    key=SessionKey("k"),
    phase=Phase.IDLE,
    reason="new",
    since=0,
    created_at=0,
    active_at=0,
    next_seq=Seq(0),
    platform="api",
)


def user(text: str) -> EncodedMessage:
    return EncodedMessage(json.dumps({"role": "user", "content": text}).encode())


def received(turn: str, text: str, *, automatic: bool = False) -> MessageReceived:
    source = Source(platform="api", automatic=automatic)
    return MessageReceived(at=1, turn=TurnId(turn), messages=(user(text),), source=source)


def shown(*records: Record) -> list[tuple[str, bool]]:
    messages, whole = stored_messages(SESSION, [LogEntry(seq=Seq(n), record=each) for n, each in enumerate(records)])
    assert whole
    return [(json.loads(each.message)["content"], each.note) for each in messages]


def test_the_note_of_a_turn_that_goes_on_is_the_systems() -> None:
    first = TurnStarted(at=2, turn=TurnId("a"), attempt=1)
    again = TurnStarted(at=3, turn=TurnId("a"), attempt=2, note="it was cut off")
    assert shown(received("a", "hello"), first, again) == [("hello", False), ("it was cut off", True)]


def test_a_note_that_comes_with_a_message_is_not_the_persons() -> None:
    started = TurnStarted(at=2, turn=TurnId("a"), attempt=1, note="a reset was due")
    assert shown(received("a", "[Note from the system: mine]"), started) == [
        ("[Note from the system: mine]", False),  # a person may write what they like
        ("a reset was due", True),
    ]


def test_what_a_process_reports_is_the_systems() -> None:
    told = received("p", "it has ended", automatic=True)
    assert shown(told, TurnStarted(at=2, turn=TurnId("p"), attempt=1)) == [("it has ended", True)]


def test_what_was_taken_over_is_told_apart_by_how_it_begins() -> None:
    summary = "[Summary of the earlier part of this conversation]"
    ended = "[Background process proc_0123456789ab has ended]"
    carried = ContextCarried(
        at=1,
        origin=SessionId("r"),
        root=SessionId("r"),
        messages=(user(summary), user("hello"), user(ended)),
        preferences=Preferences(),
        waiting=(received("p", "it wrote something", automatic=True),),
    )
    started = TurnStarted(at=2, turn=TurnId("p"), attempt=1)
    assert shown(carried, started) == [(summary, True), ("hello", False), (ended, True), ("it wrote something", True)]
