"""A step is the whole transaction: records, outbox messages, usage, grants and due time."""

from __future__ import annotations

from hermes.domain.access.question import ALWAYS
from hermes.domain.ids import Epoch, InboundKey, SessionId, TurnId
from hermes.domain.operations import Append, Enqueue, PutFact, See, SetDue, Tally
from hermes.domain.session.machine import step
from hermes.domain.session.protocol import Answer, Branch
from hermes.domain.session.state import Session
from hermes.domain.session.transaction import operations_of
from hermes.domain.source import Place, Source
from hermes.domain.turn.submission import Submission
from tests.actors.talk import API, FRESH, SessionTalk, needs_leave, said, user

CHAT = Source(platform="toy", user="ann", place=Place(platform="toy", chat="1"))
EPOCH = Epoch(7)


def due(session: Session, now: float) -> float | None:
    return now + session.next_seq


def test_step_brings_due_time_of_the_same_clock_read() -> None:
    taken = step(FRESH, said("hello"), 10.0, due=due)
    assert taken.due == 10.0 + taken.session.next_seq
    append, *_ = operations_of(taken, EPOCH)
    assert isinstance(append, Append)
    assert (append.due, append.epoch, append.head, append.records) == (taken.due, EPOCH, taken.session, taken.records)
    assert append.expected_seq + len(append.records) == taken.session.next_seq


def test_step_without_records_is_no_transaction() -> None:
    assert operations_of(step(FRESH, Answer(answer="yes", source=API), 1.0, due=due), EPOCH) == []


def test_finished_turn_brings_usage_and_outbox_message() -> None:
    talk = SessionTalk()
    started = talk.do(said("hello", source=CHAT))
    assert [message.final for message in started.outbox] == [False]
    assert not any(isinstance(each, Enqueue) for each in operations_of(started, EPOCH))
    talk.answer("hi")
    operations = operations_of(talk.last, EPOCH)
    assert [each.outgoing.text for each in operations if isinstance(each, Enqueue)] == ["hi"]
    assert [each.turns for each in operations if isinstance(each, Tally)] == [1]


def test_standing_grant_is_stored_with_its_answer() -> None:
    talk = SessionTalk()
    talk.say("clean up")
    talk.reply(needs_leave("c1", "rm"))
    taken = talk.do(Answer(answer=ALWAYS, source=API))
    assert taken.granted == ("rm",)
    assert [each.name for each in operations_of(taken, EPOCH) if isinstance(each, PutFact)] == ["grant:rm"]


def test_all_inbound_ids_of_a_message_are_seen() -> None:
    keys = InboundKey("a"), InboundKey("b")
    message = Submission(turn=TurnId("t"), messages=(user("x"),), source=API, inbound=keys[0], also=keys[1:])
    append, *others = operations_of(step(FRESH, message, 1.0), EPOCH)
    assert isinstance(append, Append)
    assert append.seen is not None
    assert [append.seen.key, *(each.seen.key for each in others if isinstance(each, See))] == list(keys)


def test_branch_fails_if_its_parent_has_changed() -> None:
    branch = Branch(child=SessionId("c"), messages=(), prompt=None, title="", reason="asked", move_key=False)
    taken = step(FRESH, branch, 1.0, due=due)
    guard, opening = operations_of(taken, EPOCH)[:2]
    assert guard == SetDue(session=FRESH.id, expected_seq=FRESH.next_seq, due=due(FRESH, 1.0))
    assert isinstance(opening, Append)
    assert (opening.session, opening.expected_seq, opening.due) == ("c", 0, due(opening.head, 1.0))
