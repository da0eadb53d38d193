"""What of a transcript people said, and what the system told."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hermes.domain.ids import Seq, SessionId, SessionKey, TurnId
from hermes.domain.read.transcript import Transcript
from hermes.domain.read.transcript_page import LOOK_BACK, RECORDS_A_MESSAGE, read_page, stored_messages
from hermes.domain.records import ContextCarried, LogEntry, MessageReceived, Record, TurnFinished, TurnStarted, Undone
from hermes.domain.session.state import Phase, Preferences, Session
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage

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
    log = [LogEntry(seq=Seq(n), record=each) for n, each in enumerate(records)]
    messages, incomplete = stored_messages(SESSION, log)
    assert not incomplete
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


# ---------------------------------------------------------------- pages


class CountingReader:
    """A log in memory that counts the records which are read from it."""

    def __init__(self, records: list[Record]) -> None:
        self.entries = [LogEntry(seq=Seq(n), record=each) for n, each in enumerate(records)]
        self.head = replace(SESSION, next_seq=Seq(len(records)))
        self.read = 0

    def log(self, _session: SessionId, first: int = 0, limit: int | None = None) -> list[LogEntry]:
        found = self.entries[first : None if limit is None else first + limit]
        self.read += len(found)
        return found

    def page(self, after: int | None, limit: int) -> list[Any]:
        self.read = 0
        found: list[Any] = read_page(self, self.head, None if after is None else Seq(after), limit)  # type: ignore[arg-type]
        return found


def turns(count: int) -> list[Record]:
    def turn(number: int) -> tuple[Record, ...]:
        name = TurnId(str(number))
        answer = EncodedMessage(json.dumps({"role": "assistant", "content": f"answer {number}"}).encode())
        return (
            received(name, f"message {number}"),
            TurnStarted(at=2, turn=name, attempt=1),
            TurnFinished(at=3, turn=name, message=answer, model="m", finish_reason="stop"),
        )

    return [record for number in range(count) for record in turn(number)]


@pytest.mark.parametrize("after", [None, -1, 5_000, 5_001, 5_002, 14_800])
def test_a_page_of_a_long_session_reads_about_what_it_shows(after: int | None) -> None:
    reader = CountingReader(turns(5_000))
    whole, _ = stored_messages(reader.head, reader.entries)
    page = reader.page(after, 100)
    expected = whole[-100:] if after is None else [each for each in whole if each.seq > after][:100]
    assert page == expected
    assert reader.read <= RECORDS_A_MESSAGE * 100 + LOOK_BACK


def test_a_message_that_waited_long_for_its_turn_is_on_its_page() -> None:
    first, started, finished, *others = turns(2 * LOOK_BACK)
    reader = CountingReader([first, *others, started, finished])
    whole, _ = stored_messages(reader.head, reader.entries)
    assert reader.page(None, 2) == whole[-2:]
    assert reader.page(len(reader.entries) - 3, 2) == whole[-2:]
    assert json.loads(whole[-2].message)["content"] == "message 0"


@pytest.mark.parametrize("begun", [False, True], ids=["still waits", "turn started"])
def test_transcript_knows_of_pictures_once_their_message_is_visible(begun: bool) -> None:
    words: tuple[Record, ...] = (received("a", "hello"), TurnStarted(at=2, turn=TurnId("a"), attempt=1))
    transcript = Transcript()
    transcript.extend((Seq(n), each) for n, each in enumerate(words))
    assert not transcript.pictured
    transcript.extend([(Seq(2), received("b", f"hermes-media:{'0' * 64}.png"))])
    if begun:
        transcript.extend([(Seq(3), TurnStarted(at=3, turn=TurnId("b"), attempt=1))])
    assert transcript.pictured is begun


def test_size_follows_the_messages() -> None:
    transcript = Transcript()
    for number, turn in enumerate(("a", "b")):
        began = TurnStarted(at=2, turn=TurnId(turn), attempt=1)
        transcript.extend([(Seq(2 * number), received(turn, "hello")), (Seq(2 * number + 1), began)])
    assert transcript.size_bytes == 2 * len(user("hello"))
    transcript.extend([(Seq(4), Undone(at=4, seq=Seq(3), offset=0, turns=1, reason="undone"))])
    assert transcript.size_bytes == sum(map(len, transcript.messages)) == len(user("hello"))
