"""Role and person of a turn."""

from __future__ import annotations

from hermes.domain.access.role import Role, assumed, lowest
from hermes.domain.records import Answered
from hermes.domain.session.state import Session, Turn
from hermes.domain.source import Source
from hermes.domain.values import replace


def with_words_of(turn: Turn, role: Role | None, by: str = "") -> Turn:
    """Return the turn with a message of that role in it. It runs with the lowest role of its messages."""
    several = turn.several or by not in ("", turn.by)
    if role is None or turn.role is None:
        return replace(turn, several=several)
    return replace(turn, role=lowest(turn.role, role), several=several)


def role_of_turn(session: Session) -> Role:
    """Return the role of the turn in flight."""
    return (session.turn and session.turn.role) or assumed(session.platform)


def who_wants(turn: Turn) -> str:
    """Return the person of a turn in words: name, platform and user, role."""
    return _who(turn.name, turn.by, turn.role)


def who_said(source: Source) -> str:
    return _who(source.name, source.by, source.standing)


def answered_by(answered: Answered) -> str:
    return _who(answered.name, answered.by, answered.role)


def _who(name: str, by: str, role: Role | None) -> str:
    known = ", ".join(filter(None, (by, role)))
    return f"{name} ({known})" if name else known or "an unknown person"
