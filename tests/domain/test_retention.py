"""Retention of conversations."""

from __future__ import annotations

from dataclasses import replace

from hermes.domain.ids import TurnId
from hermes.domain.retention import is_expired, outlook
from hermes.domain.session.state import Phase, Turn
from tests.support.fakes import NOW, a_session

DAY_S = 86_400.0
OLD = a_session("old")
LATER = NOW + 91 * DAY_S


def test_a_conversation_expires_when_all_its_sessions_are_old() -> None:
    assert is_expired([OLD], LATER, 90 * DAY_S)
    assert not is_expired([OLD], NOW + 89 * DAY_S, 90 * DAY_S)
    assert not is_expired([OLD, replace(OLD, active_at=LATER)], LATER, 90 * DAY_S)
    assert not is_expired([replace(OLD, since=LATER)], LATER, 90 * DAY_S)
    assert not is_expired([], LATER, 90 * DAY_S)


def test_open_work_keeps_a_conversation() -> None:
    turn = Turn(id=TurnId("t"), accepted_at=NOW)
    for session in (replace(OLD, phase=Phase.WAITING, turn=turn), replace(OLD, queue=(turn,))):
        assert not is_expired([session], LATER, 90 * DAY_S)
    assert is_expired([replace(OLD, phase=Phase.SUSPENDED)], LATER, 90 * DAY_S)


def test_outlook_names_the_time_of_deletion_and_nothing_without_retention() -> None:
    assert outlook(OLD, 90 * DAY_S).startswith("If it is not used again, it is deleted after 2027-04-15 08:00 UTC")
    assert outlook(OLD, None) == ""
    assert outlook(replace(OLD, phase=Phase.WAITING, turn=Turn(id=TurnId("t"), accepted_at=NOW)), DAY_S) == ""
