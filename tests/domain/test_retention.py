"""Retention of conversations."""

from __future__ import annotations

from dataclasses import replace

from hermes.domain.cause.cause import EndCause
from hermes.domain.ids import TurnId
from hermes.domain.retention import is_expired, outlook
from hermes.domain.session.protocol import EndSession, Refuse
from hermes.domain.session.state import Phase, Turn
from tests.actors.talk import SessionTalk
from tests.support.fakes import NOW, a_session

DAY_S = 86_400.0
OLD = a_session("old")
LATER = NOW + 91 * DAY_S


def test_a_conversation_expires_when_all_its_sessions_are_old() -> None:
    assert is_expired([OLD], LATER - 90 * DAY_S)
    assert not is_expired([OLD], NOW - DAY_S)
    assert not is_expired([OLD, replace(OLD, active_at=LATER)], LATER - 90 * DAY_S)
    assert not is_expired([replace(OLD, since=LATER)], LATER - 90 * DAY_S)
    assert not is_expired([], LATER - 90 * DAY_S)


def test_open_work_keeps_a_conversation() -> None:
    turn = Turn(id=TurnId("t"), accepted_at=NOW)
    for session in (replace(OLD, phase=Phase.WAITING, turn=turn), replace(OLD, queue=(turn,))):
        assert not is_expired([session], LATER - 90 * DAY_S)
    assert is_expired([replace(OLD, phase=Phase.SUSPENDED)], LATER - 90 * DAY_S)


def test_interrupted_deletion_is_finished() -> None:
    ended = replace(OLD, phase=Phase.ENDED, since=LATER, end_cause=EndCause.EXPIRED)
    assert is_expired([ended], NOW)
    assert not is_expired([replace(ended, end_cause=EndCause.ASKED)], NOW)
    assert not is_expired([replace(ended, phase=Phase.IDLE)], NOW)  # a person resumed it
    parent = replace(OLD, phase=Phase.ENDED, end_cause=EndCause.COMPRESSION)
    assert is_expired([ended, parent], NOW - DAY_S)
    assert not is_expired([ended, replace(parent, phase=Phase.IDLE)], NOW - DAY_S)


def test_session_that_was_used_meanwhile_is_not_ended() -> None:
    talk = SessionTalk()
    talk.say("a")
    at = talk.session.active_at
    expired = EndSession(reason="not used", cause=EndCause.EXPIRED, unused_since=at + 1)
    assert refusals(talk, expired) == ["session_in_use"]  # its turn runs
    talk.answer("A")
    used_at = max(talk.session.active_at, talk.session.since)
    assert refusals(talk, replace(expired, unused_since=used_at)) == ["session_in_use"]
    assert refusals(talk, replace(expired, unused_since=used_at + 1)) == []
    assert (talk.phase, talk.session.end_cause) == (Phase.ENDED, EndCause.EXPIRED)
    assert refusals(talk, expired) == ["wrong_phase"]


def refusals(talk: SessionTalk, event: EndSession) -> list[str]:
    talk.do(event)
    return [effect.error.code for effect in talk.last.effects if isinstance(effect, Refuse)]


def test_outlook_names_the_time_of_deletion_and_nothing_without_retention() -> None:
    assert outlook(OLD, 90 * DAY_S).startswith("If it is not used again, it is deleted after 2027-04-15 08:00 UTC")
    assert outlook(OLD, None) == ""
    assert outlook(replace(OLD, phase=Phase.WAITING, turn=Turn(id=TurnId("t"), accepted_at=NOW)), DAY_S) == ""
