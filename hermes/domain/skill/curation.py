"""Curation of skills: which are stale, which are archived, which overlap. Pure.

Only skills that the agent wrote are archived. Archiving takes a skill off the disk; its versions stay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from hermes.domain.change import Change, ChangeAction, ChangeAuthor
from hermes.domain.skill.skill_effect import SkillRun
from hermes.domain.skill.skill_version import current
from hermes.domain.values import dataclass

DAY_S: Final = 86_400.0
OVERLAP: Final = 0.6  # share of common words from which two descriptions overlap
_COMMON: Final = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "by",
        "for",
        "from",
        "how",
        "in",
        "is",
        "it",
        "of",
        "on",
        "or",
        "that",
        "the",
        "this",
        "to",
        "use",
        "when",
        "with",
        "you",
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationTerms:
    stale_days: float = 30.0
    archive_days: float = 90.0


def age_of(changes: Sequence[Change], runs: Sequence[SkillRun], now: float) -> float:
    """Return for how many seconds a skill was neither used nor changed."""
    return now - max([*(each.at for each in changes[-1:]), *(run.at for run in runs)], default=now)


def is_by_agent(changes: Sequence[Change]) -> bool:
    """Return whether the agent created the skill."""
    created = next((each for each in changes if each.action in (ChangeAction.CREATE, ChangeAction.APPROVE)), None)
    first = changes[0] if changes else None
    return created is not None and first is not None and first.author in (ChangeAuthor.AGENT, ChangeAuthor.REVIEW)


def is_stale(
    changes: Sequence[Change], runs: Sequence[SkillRun], terms: CurationTerms, now: float, *, exempt: bool
) -> bool:
    version = current(changes)
    there = version is not None and version.is_there
    return there and not exempt and is_by_agent(changes) and age_of(changes, runs, now) >= terms.stale_days * DAY_S


def is_archived_now(
    changes: Sequence[Change], runs: Sequence[SkillRun], terms: CurationTerms, now: float, *, exempt: bool
) -> bool:
    stale = is_stale(changes, runs, terms, now, exempt=exempt)
    return stale and age_of(changes, runs, now) >= terms.archive_days * DAY_S


def overlaps(descriptions: Mapping[str, str]) -> list[tuple[str, str, float]]:
    """Return pairs of skills whose descriptions share most words, most similar first."""
    words = {name: set(re.findall(r"\w{3,}", text.lower())) - _COMMON for name, text in descriptions.items()}
    names = sorted(words)
    found = []
    for place, one in enumerate(names):
        for other in names[place + 1 :]:
            union = words[one] | words[other]
            share = len(words[one] & words[other]) / len(union) if union else 0.0
            if share >= OVERLAP:
                found.append((one, other, round(share, 2)))
    return sorted(found, key=lambda each: -each[2])
