"""Conclusions that a model draws about a person from what was said, and their effect on the profile. Pure.

A conclusion counts only with a quote: words that the person really wrote, which become its evidence. A contradiction
is decided by time: the belief with the newer evidence is held, whatever the order of the reviews.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from hermes.domain.profile.belief import (
    MAX_CONFIDENCE,
    MAX_EVIDENCE,
    MAX_QUOTE,
    MAX_TEXT,
    MAX_TOPIC,
    Belief,
    Evidence,
    Profile,
)
from hermes.domain.text.injection import suspicion
from hermes.domain.values import dataclass, replace

MAX_CONCLUSIONS: Final = 20  # of one answer
MIN_QUOTE: Final = 3  # characters
INFERRED_MAX: Final = 0.6  # confidence of what the person did not say
_FENCED = re.compile(r"<untrusted-([0-9a-f]+)>.*?</untrusted-\1>", re.DOTALL)  # text of others in a person's message


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """Message of a turn, as far as a person model reads it."""

    session: str
    turn: str
    at: float
    text: str
    by_person: bool  # False: the assistant

    @property
    def own_words(self) -> str:
        """Return what the person wrote, without the fenced text of others."""
        return _FENCED.sub(" ", self.text) if self.by_person else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    topic: str
    text: str
    quote: str
    confidence: float
    inferred: bool = False
    same_as: str = ""  # id of the belief that it confirms
    replaces: str = ""  # id of the belief that it contradicts


def read_conclusions(answer: str) -> tuple[Conclusion, ...] | None:
    """Read a model's answer; None if it is not of the required form. Unusable items are left out."""
    start, end = answer.find("["), answer.rfind("]")
    try:
        found = json.loads(answer[start : end + 1]) if 0 <= start < end else None
    except ValueError:
        return None
    if not isinstance(found, list):
        return None
    read = (_conclusion(each) for each in found[:MAX_CONCLUSIONS])
    return tuple(each for each in read if each is not None)


def _conclusion(values: Any) -> Conclusion | None:
    if not isinstance(values, dict):
        return None
    topic, text, quote = (_line(values.get(name)) for name in ("topic", "fact", "quote"))
    confidence = values.get("confidence", 0.8)
    if not text or len(text) > MAX_TEXT or not isinstance(confidence, (int, float)) or suspicion(f"{topic}: {text}"):
        return None
    return Conclusion(
        topic=topic[:MAX_TOPIC],
        text=text,
        quote=quote[:MAX_QUOTE],
        confidence=min(max(float(confidence), 0.05), MAX_CONFIDENCE),
        inferred=values.get("inferred") is True,
        same_as=_line(values.get("same_as")),
        replaces=_line(values.get("replaces")),
    )


def _line(value: Any) -> str:
    return " ".join(str(value).split()) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def concluded(profile: Profile, conclusions: Sequence[Conclusion], said: Sequence[Spoken]) -> Profile:
    """Return the profile after these conclusions. Those without evidence in the person's own words do not count."""
    for conclusion in conclusions:
        if evidence := _evidence(conclusion, said):
            profile = _with(profile, conclusion, evidence)
    return profile.bounded()


def _evidence(conclusion: Conclusion, said: Sequence[Spoken]) -> Evidence | None:
    """Return where the person wrote the quote; the last place if there are several."""
    wanted = _plain(conclusion.quote)
    if len(wanted) < MIN_QUOTE:
        return None
    for each in reversed(said):
        if wanted in _plain(each.own_words):
            return Evidence(quote=conclusion.quote, session=each.session, turn=each.turn, at=each.at)
    return None


def _with(profile: Profile, conclusion: Conclusion, evidence: Evidence) -> Profile:
    if known := _known(profile, conclusion):
        return _replaced(profile, _confirmed(known, conclusion, evidence))
    confidence = min(conclusion.confidence, INFERRED_MAX) if conclusion.inferred else conclusion.confidence
    number = profile.last_id + 1
    belief = Belief(
        id=str(number),
        topic=conclusion.topic,
        text=conclusion.text,
        confidence=confidence,
        inferred=conclusion.inferred,
        evidence=(evidence,),
    )
    old = profile.find(conclusion.replaces)
    beliefs = profile.beliefs
    if old is not None and old.is_held:
        if old.at <= belief.at:
            beliefs = _replaced(profile, replace(old, superseded_by=belief.id)).beliefs
        else:  # what was said earlier is found later
            belief = replace(belief, superseded_by=old.id)
    return replace(profile, beliefs=(*beliefs, belief), last_id=number)


def _known(profile: Profile, conclusion: Conclusion) -> Belief | None:
    """Return the held belief that a conclusion confirms."""
    if (named := profile.find(conclusion.same_as)) is not None and named.is_held:
        return named
    return next((each for each in profile.held if _plain(each.text) == _plain(conclusion.text)), None)


def _confirmed(belief: Belief, conclusion: Conclusion, evidence: Evidence) -> Belief:
    """Return a belief with more evidence. Evidence that it has already changes nothing."""
    if any((each.turn, _plain(each.quote)) == (evidence.turn, _plain(evidence.quote)) for each in belief.evidence):
        return belief
    doubt = (1 - belief.confidence) * (1 - conclusion.confidence / 2)
    inferred = belief.inferred and conclusion.inferred
    confidence = min(1 - doubt, INFERRED_MAX if inferred else MAX_CONFIDENCE)
    known = sorted((*belief.evidence, evidence), key=lambda each: each.at)[-MAX_EVIDENCE:]
    return replace(belief, confidence=max(belief.confidence, confidence), inferred=inferred, evidence=tuple(known))


def _replaced(profile: Profile, belief: Belief) -> Profile:
    return replace(profile, beliefs=tuple(belief if each.id == belief.id else each for each in profile.beliefs))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
