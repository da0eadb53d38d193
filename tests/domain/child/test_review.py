"""When a review is due, and that its start is stored with the turn that made it due."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.domain.access.role import Role
from hermes.domain.child.child import Purpose, decode_duty
from hermes.domain.ids import Epoch, SessionId, SessionKey
from hermes.domain.operations import PutFact
from hermes.domain.records import ChildStarted, SessionStarted
from hermes.domain.session.fold.state_fold import begin
from hermes.domain.session.protocol import ReviewTerms, TurnLimits
from hermes.domain.session.state import Session
from hermes.domain.session.transaction import operations_of
from hermes.domain.source import ChatContext, Source
from tests.actors.talk import API, SessionTalk, does, said

EVERY_TWO = TurnLimits(review=ReviewTerms(turns=2, calls=3))


def talk(source: Source = API, company: ChatContext | None = None) -> SessionTalk:
    started = SessionStarted(at=0.0, key=SessionKey("agent:main:api:dm:s"), source=source, reason="first message")
    fresh: Session = replace(begin(SessionId("s"), started), company=company)
    return SessionTalk(fresh, (started,), EVERY_TWO)


def turns(here: SessionTalk, count: int, source: Source = API) -> list[ChildStarted]:
    """Complete so many turns, and return the reviews that they started."""
    first = len(here.log)
    for number in range(count):
        here.do(said(f"{first}-{number}", source=source))
        here.answer()
    return [each for each in here.log[first:] if isinstance(each, ChildStarted)]


def test_review_starts_after_so_many_turns_and_the_count_starts_again() -> None:
    here = talk()
    assert [each.topics for each in turns(here, 4)] == [("memory",), ("memory",)]
    assert here.session.unreviewed_turns == 0
    assert len(here.session.children) == 2


def test_duty_is_part_of_the_transaction_of_the_turn() -> None:
    here = talk()
    [started] = turns(here, 2)
    [fact] = [each for each in operations_of(here.last, Epoch(1)) if isinstance(each, PutFact)]
    duty = decode_duty(fact.name, fact.value or b"")
    assert (duty.key, duty.child, duty.parent, duty.turn) == (started.key, started.child, "s", started.turn)
    assert duty == here.last.children[0]
    assert duty.purpose is Purpose.REVIEW


def test_calls_of_tools_lead_to_a_review_for_skills_unless_a_skill_was_used() -> None:
    here = talk()
    here.say("one")
    here.reply(does("a"), does("b"))
    here.returns("a")
    here.returns("b")
    here.reply(replace(does("c"), name="skill_view"))
    here.returns("c")
    here.answer()
    assert here.session.unreviewed_calls == 0
    here.say("two")
    here.reply(does("d"), does("e"))
    here.returns("d")
    here.returns("e")
    here.reply(does("f"))
    here.returns("f")
    here.answer()
    assert [each.topics for each in here.log if isinstance(each, ChildStarted)] == [("memory", "skills")]


@pytest.mark.parametrize(
    ("source", "company"),
    [
        (Source(platform="toy", user="9", role=Role.GUEST), None),
        (Source(platform="toy", user="9", role=Role.USER, automatic=True), None),
        (Source(platform="toy", user="9", role=Role.USER), ChatContext(kind="group", shared=True)),
    ],
    ids=["guest", "automatic", "shared"],
)
def test_no_review_for(source: Source, company: ChatContext | None) -> None:
    assert turns(talk(source, company), 4, source) == []


def test_no_review_when_it_is_off() -> None:
    here = talk()
    here.limits = TurnLimits()
    assert turns(here, 12) == []


def test_failed_turn_does_not_count_and_starts_none() -> None:
    here = talk()
    here.say("one")
    here.fail()
    assert here.session.unreviewed_turns == 0
    assert len(turns(here, 2)) == 1


def test_count_goes_on_in_the_session_after_a_compression() -> None:
    here = talk()
    here.say("one")
    here.answer(full=True)
    after = here.summarised()
    assert after.session.unreviewed_turns == 1
    after.now = 2.0
    assert len(turns(after, 1)) == 1
