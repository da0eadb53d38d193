"""The judge itself: each kind of broken promise is seen in a forged history, and a good history passes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.actors.talk import FRESH
from tests.support.judge import (
    Accepted,
    Acknowledged,
    Complaint,
    Crashed,
    Delivered,
    Effect,
    Erased,
    Happening,
    History,
    Launched,
    Looked,
    Merged,
    Open,
    ReplyExpected,
    Retried,
    Sample,
    Sent,
    Settled,
    Shown,
    Stored,
    Told,
    Withdrawn,
    judge,
)

GOOD: tuple[Happening, ...] = (
    Sent(inbound="a", at=1),
    Acknowledged(inbound="a", at=2, session="s", turn="t1"),
    Sent(inbound="b", at=3),
    Acknowledged(inbound="b", at=4, session="s", turn="t2"),
    Shown(session="s", inbounds=("a",)),
    Effect(call="c1"),
    Crashed(at=5),
    Acknowledged(inbound="a", at=6, session="s", turn="t1"),
    Delivered(to="r1", turn="t1", text="yes"),
    Delivered(to="chat", turn="t1", text="yes"),
    Delivered(to="chat", turn="t1", text="yes", marked=True),
    ReplyExpected(to="chat", turn="t1"),
    Accepted(inbound="a", turn="t1", session="s"),
    Accepted(inbound="b", turn="t2", session="s"),
    Settled(turn="t1", text="yes"),
    Settled(turn="t2", text="no"),
    Looked(session="s", inbounds=("a", "b")),
    Stored(row=FRESH, fold=FRESH),
    Open(session="s", phase="running", quiet_s=59),
    Sample(what="threads", value=7, limit=7),
)


def forged(*added: Happening, without: tuple[Happening, ...] = (), surveyed: bool = True) -> list[str]:
    happenings = [each for each in GOOD if each not in without]
    return [str(each) for each in judge(History([*happenings, *added], surveyed=surveyed))]


def looked(*inbounds: str) -> Looked:
    return Looked(session="s", inbounds=inbounds)


def test_a_good_history_has_no_violations() -> None:
    assert forged() == []


def test_an_empty_history_has_no_violations() -> None:
    assert judge(History()) == []


@pytest.mark.parametrize(
    ("added", "without", "said"),
    [
        ((looked("a"),), (GOOD[16],), "b was acknowledged and is in no transcript"),
        ((), (GOOD[13],), "b is not in the journal"),
        ((Accepted(inbound="a", turn="t1", session="s2"),), (), "a was accepted 2 times"),
        ((Acknowledged(inbound="a", at=9, turn="t9"), Settled(turn="t9")), (), "a is turns ['t1', 't9']"),
        ((looked("a", "b", "a"),), (), "shows ['a'] twice"),
        ((Shown(session="s", inbounds=("b", "b")),), (), "shows ['b'] twice"),
        ((Shown(session="s", inbounds=(), ahead="a reply"),), (), "not on disk: a reply"),
        ((Effect(call="c1"),), (), "c1 had its effect 2 times"),
        ((Effect(call="c2", recorded=False),), (), "c2 had an effect before it was recorded"),
        ((Settled(turn="t1", text="yes"),), (), "turn t1 ended 2 times"),
        ((), (GOOD[15],), "turn t2 was taken and never ended"),
        ((Delivered(to="r1", turn="t1", text="yes"),), (), "r1 got the reply of turn t1 2 times"),
        ((Delivered(to="r2", turn="t1", text="half"),), (), "the journal says 'yes'"),
        (
            (Delivered(to="chat", turn="t1", text="yes", marked=True),),
            (),
            "2 marked duplicates of turn t1 for 1 doubts",
        ),
        ((ReplyExpected(to="chat", turn="t2"),), (), "chat never got the reply of turn t2"),
        ((looked("b", "a"),), (), "has b before a, which was acknowledged before it was sent"),
        ((Retried(inbound="a", turn="t3"),), (), "turn t3 was taken and never ended"),
        (
            (Withdrawn(inbounds=("b",), session="s"), Shown(session="s", inbounds=("a", "b"))),
            (),
            "session s shows b, which was taken back",
        ),
        ((Withdrawn(inbounds=("b",)), Shown(session="s2", inbounds=("b",))), (), "session s2 shows b"),
        ((Launched(process="p", session="s"),), (), "the end of p of session s was never told"),
        ((Told(process="p"), Told(process="p")), (), "the end of p was told 2 times"),
        ((Open(session="s", phase="running", quiet_s=61),), (), "did nothing for 61 s"),
        ((Sample(what="threads", value=8, limit=7),), (), "threads: 8, more than 7"),
        ((Stored(row=FRESH, fold=replace(FRESH, turns=1)),), (), "its row says"),
        ((Complaint(problem="nobody caught it"),), (), "nobody caught it"),
    ],
)
def test_each_broken_promise_is_seen(added: tuple[Happening, ...], without: tuple[Happening, ...], said: str) -> None:
    violations = forged(*added, without=without)
    assert any(said in violation for violation in violations), violations


def test_a_message_whose_turn_was_stopped_while_it_waited_is_not_lost() -> None:
    stopped = Settled(turn="t2", failure="cancelled")
    assert forged(stopped, looked("a"), without=(GOOD[15], GOOD[16])) == []


def test_a_message_that_was_taken_back_is_not_lost_and_may_be_heard_elsewhere() -> None:
    withdrawn = Withdrawn(inbounds=("b",), session="s")
    assert forged(withdrawn, Shown(session="s2", inbounds=("b",)), looked("a"), without=(GOOD[16],)) == []


def test_the_end_of_a_process_may_be_told_to_its_person_and_need_not_be_told_to_a_deleted_session() -> None:
    launched = (Launched(process="p", session="s"), Launched(process="q", session="s2"))
    assert forged(*launched, Told(process="p", late=True), Erased(session="s2")) == []


def test_a_message_that_became_part_of_a_turn_ends_with_it() -> None:
    assert forged(Merged(turn="t2", into="t1"), without=(GOOD[15],)) == []


def test_a_message_that_steers_or_answers_a_turn_may_be_heard_first() -> None:
    steering = Sent(inbound="b", at=3, overtakes=True)
    assert forged(steering, looked("b", "a"), without=(GOOD[2], GOOD[16])) == []
    assert forged(Merged(turn="t2", into="t1"), looked("b", "a"), without=(GOOD[15], GOOD[16])) == []


def test_what_nobody_acknowledged_may_be_missing_or_be_there() -> None:
    assert forged(Sent(inbound="c", at=7)) == []
    assert forged(Sent(inbound="c", at=7), looked("a", "b", "c"), without=(GOOD[16],)) == []


def test_a_suite_that_cannot_read_the_journal_is_not_asked_for_its_ends() -> None:
    partial = (Sent(inbound="a", at=1), Acknowledged(inbound="a", at=2), looked("a"))
    assert judge(History(partial)) == []
