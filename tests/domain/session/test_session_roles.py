"""Roles in the session machine: a turn runs with the lowest role among those whose words are in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.domain.access.role import Role
from hermes.domain.cause.cause import HoldCause
from hermes.domain.ids import SessionId, SessionKey, TurnId
from hermes.domain.records import Answered, SessionStarted
from hermes.domain.session.builder import open_turns
from hermes.domain.session.fold.state_fold import begin, replay
from hermes.domain.session.protocol import Answer, Begin, Refuse, Rewrite
from hermes.domain.session.state import Session
from hermes.domain.session.turn_role import role_of_turn
from hermes.domain.source import ChatContext, Place, Source
from hermes.domain.turn.submission import Submission
from hermes.domain.turn.turn_failure import FailureKind
from tests.actors.talk import SessionTalk, asks, does, said, user

THERE = Place(platform="toy", chat="g", message="1")


def person(name: str, role: Role | None) -> Source:
    return Source(platform="toy", user=name, place=THERE, role=role, name=name.title())


BOSS, ANN, EVE = person("boss", Role.ADMIN), person("ann", Role.USER), person("eve", Role.GUEST)


def shared_talk() -> SessionTalk:
    """A group whose members share one session."""
    source = replace(BOSS, company=ChatContext(kind="group", shared=True))
    started = SessionStarted(at=0.0, key=SessionKey("agent:main:toy:group:g"), source=source, reason="first message")
    return SessionTalk(begin(SessionId("s"), started), log=(started,))


def role_in(session: Session) -> Role:
    assert session.turn is not None
    return role_of_turn(session)


@pytest.mark.parametrize("who", [BOSS, ANN, EVE])
def test_turn_has_the_role_of_its_author(who: Source) -> None:
    talk = shared_talk()
    talk.do(said("hello", source=who))
    assert role_in(talk.session) is who.role
    assert talk.session.turn is not None
    assert (talk.session.turn.by, talk.session.turn.name) == (f"toy:{who.user}", who.name)
    assert replay(talk.session.id, talk.entries()) == talk.session


def test_a_turn_stored_before_there_were_roles_is_a_guests() -> None:
    talk = shared_talk()
    talk.do(said("hello", source=person("boss", None)))
    assert role_in(talk.session) is Role.GUEST
    assert talk.session.turn is not None
    old = replace(talk.session, turn=replace(talk.session.turn, role=None))
    assert role_in(old) is Role.GUEST
    assert role_in(replace(old, platform="api")) is Role.OWNER


def test_guest_cannot_steer_the_turn_of_a_higher_role() -> None:
    talk = shared_talk()
    talk.do(said("work", source=BOSS))
    talk.reply(does("w1"))
    talk.do(said("do something else", source=EVE, busy="steer"))
    assert [turn.steer for turn in talk.session.queue] == [False]
    talk.returns("w1")
    assert role_in(talk.session) is Role.ADMIN
    assert "user: do something else" not in talk.shown()
    talk.answer()
    assert role_in(talk.session) is Role.GUEST


def test_somebody_above_may_steer_a_guests_turn_which_stays_one() -> None:
    talk = shared_talk()
    talk.do(said("work", source=EVE))
    talk.reply(does("w1"))
    talk.do(said("so", source=BOSS, busy="steer"))
    talk.returns("w1")
    assert "user: so" in talk.shown()
    assert role_in(talk.session) is Role.GUEST


def test_what_steers_lowers_the_role_of_the_turn_that_it_becomes_part_of() -> None:
    talk = shared_talk()
    talk.do(said("one", source=EVE))
    talk.do(said("two", source=BOSS))
    talk.do(said("three", source=EVE, busy="steer"))
    talk.answer()
    assert role_in(talk.session) is Role.ADMIN
    talk.reply(does("w1"))
    talk.returns("w1")
    assert "user: three" in talk.shown()
    assert role_in(talk.session) is Role.GUEST, "it was to steer a guest's turn, and met an admin's"
    assert replay(talk.session.id, talk.entries()) == talk.session


def test_the_rest_of_a_message_by_somebody_lower_lowers_its_role() -> None:
    talk = shared_talk()
    talk.do(replace(said("one", source=BOSS), more_s=1.0))
    talk.do(Submission(turn=TurnId("two"), messages=(user("two"),), source=EVE, joins=TurnId("one")))
    assert talk.shown() == ["user: one", "user: two"]
    assert role_in(talk.session) is Role.GUEST


def test_edited_message_has_the_role_of_its_author() -> None:
    talk = shared_talk()
    talk.do(said("one", source=replace(BOSS, place=None)))
    talk.do(said("two", source=BOSS))
    talk.do(Rewrite(place=THERE, message=user("other"), role=Role.GUEST))
    talk.answer()
    assert role_in(talk.session) is Role.GUEST


def test_who_answers_the_models_question_has_a_say_in_the_turn() -> None:
    talk = shared_talk()
    talk.do(said("work", source=BOSS))
    talk.reply(asks("q1"))
    talk.do(Answer(answer="red", source=replace(BOSS, role=Role.GUEST)))
    [answered] = [record for record in talk.log if isinstance(record, Answered)]
    assert (answered.by, answered.role, answered.name) == ("toy:boss", Role.GUEST, "Boss")
    assert role_in(talk.session) is Role.GUEST


def test_a_message_sent_again_keeps_the_role_of_its_writer() -> None:
    talk = shared_talk()
    talk.do(said("do it", source=EVE))
    talk.answer()
    talk.undo(again="again", source=BOSS)
    assert role_in(talk.session) is Role.GUEST
    talk.answer()
    talk.do(said("mine", source=ANN))
    talk.answer()
    talk.undo(again="once more", source=BOSS)
    assert role_in(talk.session) is Role.USER


def test_roles_survive_a_compression() -> None:
    talk = shared_talk()
    talk.do(said("one", source=BOSS))
    talk.do(said("two", source=EVE))
    talk.do(said("three", source=ANN))
    talk.fail(FailureKind.CONTEXT_OVERFLOW)
    child = talk.summarised().session
    assert [turn.role for turn in open_turns(child)] == [Role.ADMIN, Role.GUEST, Role.USER]
    assert [turn.by for turn in open_turns(child)] == ["toy:boss", "toy:eve", "toy:ann"]


def test_held_turn_keeps_its_role_when_a_lower_role_writes() -> None:
    talk = shared_talk()
    talk.do(said("work", source=BOSS))
    talk.crash(hold=HoldCause.CONFIGURED)
    talk.do(said("me too", source=EVE))
    assert role_in(talk.session) is Role.ADMIN
    assert [turn.role for turn in talk.session.queue] == [Role.GUEST]


def is_of_several(talk: SessionTalk) -> bool:
    return talk.turn.several


def test_a_turn_in_which_several_people_have_a_say_is_nobodys_alone() -> None:
    talk = shared_talk()
    talk.do(said("work", source=EVE))
    talk.reply(does("w1"))
    talk.do(said("so", source=BOSS, busy="steer"))
    assert not is_of_several(talk)
    talk.returns("w1")
    assert is_of_several(talk)
    alone = shared_talk()
    alone.do(said("work", source=EVE))
    alone.reply(does("w1"))
    alone.do(said("so", source=EVE, busy="steer"))
    alone.returns("w1")
    assert not is_of_several(alone)


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [
        ("key-ci", "key-web", True),
        ("key-ci", "api", True),
        ("api", "key-ci", True),
        ("key-ci", "key-ci", False),
        ("api", "api", False),
        ("key-ci", "terminal", False),  # the owner continues it on purpose
        ("telegram", "api", False),
    ],
)
def test_first_messages_of_two_keys_do_not_meet_in_one_new_session(first: str, second: str, refused: bool) -> None:
    started = SessionStarted(at=0.0, key=SessionKey("k"), source=Source(platform=first), reason="first message")
    talk = SessionTalk(begin(SessionId("s"), started), log=(started,))
    talk.do(said("mine", source=Source(platform=first)))
    before = talk.session
    talk.do(said("yours", source=Source(platform=second)))
    assert any(isinstance(effect, Refuse) for effect in talk.last.effects) is refused
    assert (talk.session == before) is refused
    talk.do(Begin(source=Source(platform=second), title="yours"))
    assert any(isinstance(effect, Refuse) for effect in talk.last.effects) is refused
