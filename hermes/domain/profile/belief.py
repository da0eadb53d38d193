"""Beliefs about one person: what Hermes holds true, how sure it is, and which words of the person it rests on. Pure.

A belief that newer evidence contradicts is superseded: it stays as history until it is forgotten or pushed out.
"""

from __future__ import annotations

import json
from typing import Any, Final

from hermes.domain.change import Change
from hermes.domain.values import dataclass, replace

PREFIX: Final = "profile/"  # of the subjects in the change log
MAX_BELIEFS: Final = 60  # held at a time
MAX_SUPERSEDED: Final = 40
MAX_EVIDENCE: Final = 5  # of one belief, the newest
MAX_TEXT: Final = 300  # characters of a belief
MAX_TOPIC: Final = 60
MAX_QUOTE: Final = 300
MAX_CONFIDENCE: Final = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Words of the person, and where they are."""

    quote: str
    session: str
    turn: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    id: str
    topic: str
    text: str
    confidence: float  # 0 to 1
    inferred: bool = False  # concluded from the words, not said by them
    evidence: tuple[Evidence, ...] = ()  # oldest first
    superseded_by: str = ""  # empty: it is held

    @property
    def at(self) -> float:
        """Return the time of the newest evidence."""
        return max((each.at for each in self.evidence), default=0.0)

    @property
    def is_held(self) -> bool:
        return not self.superseded_by


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """All beliefs about one person."""

    beliefs: tuple[Belief, ...] = ()
    last_id: int = 0

    @property
    def held(self) -> tuple[Belief, ...]:
        """Return the beliefs that are held, the surest and newest first."""
        held = (each for each in self.beliefs if each.is_held)
        return tuple(sorted(held, key=lambda each: (-each.confidence, -each.at)))

    def find(self, belief: str) -> Belief | None:
        return next((each for each in self.beliefs if each.id == belief), None)

    def earlier(self, belief: str) -> tuple[Belief, ...]:
        """Return what this belief has superseded, directly or not."""
        found: list[Belief] = []
        wanted = [belief]
        while wanted:
            newer = wanted.pop()
            older = [each for each in self.beliefs if each.superseded_by == newer and each not in found]
            found += older
            wanted += [each.id for each in older]
        return tuple(found)

    def without(self, belief: str) -> Profile:
        """Return the profile without a belief and what it has superseded."""
        gone = {belief, *(each.id for each in self.earlier(belief))}
        return replace(self, beliefs=tuple(each for each in self.beliefs if each.id not in gone))

    def bounded(self) -> Profile:
        """Drop the least sure held beliefs and the oldest superseded ones above the limits."""
        held = self.held[:MAX_BELIEFS]
        kept = {each.id for each in held}
        past = sorted((each for each in self.beliefs if not each.is_held), key=lambda each: -each.at)
        kept |= {each.id for each in past[:MAX_SUPERSEDED]}
        return replace(self, beliefs=tuple(each for each in self.beliefs if each.id in kept))


# ---------------------------------------------------------------- stored form


def encoded(profile: Profile, scope: str) -> bytes:
    """Return the payload of a change: the whole profile after it, and the person as text."""
    values = {"scope": scope, "last_id": profile.last_id, "beliefs": [plain(each) for each in profile.beliefs]}
    return json.dumps(values, ensure_ascii=False).encode()


def plain(belief: Belief) -> dict[str, Any]:
    return {
        "id": belief.id,
        "topic": belief.topic,
        "text": belief.text,
        "confidence": round(belief.confidence, 3),
        "inferred": belief.inferred,
        "superseded_by": belief.superseded_by,
        "evidence": [
            {"quote": each.quote, "session": each.session, "turn": each.turn, "at": each.at}
            for each in belief.evidence
        ],
    }


def profile_after(change: Change | None) -> Profile:
    """Return the profile after a change. Before the first change, and after a damaged one, it is empty."""
    if change is None:
        return Profile()
    try:
        values = json.loads(change.payload)
        return Profile(beliefs=tuple(map(_belief, values["beliefs"])), last_id=values["last_id"])
    except (ValueError, KeyError, TypeError):
        return Profile()


def scope_after(change: Change) -> str:
    """Return the scope of a change as text; empty if it cannot be read."""
    try:
        return str(json.loads(change.payload)["scope"])
    except (ValueError, KeyError, TypeError):
        return ""


def _belief(values: dict[str, Any]) -> Belief:
    return Belief(
        id=values["id"],
        topic=values["topic"],
        text=values["text"],
        confidence=values["confidence"],
        inferred=values["inferred"],
        superseded_by=values["superseded_by"],
        evidence=tuple(Evidence(**each) for each in values["evidence"]),
    )
