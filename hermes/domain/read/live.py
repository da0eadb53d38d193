"""Live sessions: what a live view shows of each, and their order. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from enum import StrEnum

from hermes.domain.read.activity import ActivityKind, activity_of
from hermes.domain.session.state import Phase, Session
from hermes.domain.values import dataclass


class LiveSort(StrEnum):
    STATE = "state"  # sessions that wait for a person first, then running ones
    AGE = "age"  # of the current step
    MAIL = "mail"
    TOKENS = "tokens"
    COST = "cost"
    ACTIVE = "active"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSession:
    """A session in memory."""

    session: Session
    mailbox: int
    step_age_s: float | None  # since its last model or tool call began; None: nothing runs


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveQuery:
    sort: LiveSort = LiveSort.STATE
    find: str = ""  # words; all of them must occur
    limit: int = 100
    is_busy: bool = False  # only sessions with open work
    children: bool = False  # child sessions too


_RANKS = (Phase.WAITING, Phase.RUNNING, Phase.RESUME_PENDING, Phase.SUSPENDED)


def ranked(sessions: Iterable[LiveSession], query: LiveQuery, now: float) -> tuple[list[LiveSession], int]:
    """Return the first sessions in the order of a query, and how many match it."""
    words = query.find.casefold().split()
    matching = [
        each
        for each in sessions
        if (query.children or each.session.assignment is None)
        and (not query.is_busy or _rank(each.session) < len(_RANKS))
        and (not words or _has(each.session, words))
    ]
    return heapq.nsmallest(query.limit, matching, key=lambda each: _place(each, query.sort, now)), len(matching)


def step_age_s(live: LiveSession, now: float) -> float:
    """Return for how long the session does what it does now."""
    if live.step_age_s is not None and live.session.phase is Phase.RUNNING:
        return live.step_age_s
    return max(0.0, now - live.session.since)


def _rank(session: Session) -> int:
    if session.phase in _RANKS:
        return _RANKS.index(session.phase)
    return len(_RANKS) - 1 if session.queue or session.compressing else len(_RANKS)


def _place(live: LiveSession, sort: LiveSort, now: float) -> tuple[float, float]:
    session = live.session
    match sort:
        case LiveSort.STATE:
            return _rank(session), -session.active_at
        case LiveSort.AGE:  # a session without work does nothing, however long
            return _rank(session) == len(_RANKS), -step_age_s(live, now)
        case LiveSort.MAIL:
            return -(live.mailbox + len(session.queue)), -session.active_at
        case LiveSort.TOKENS:
            return -(session.usage.prompt_tokens + session.usage.completion_tokens), -session.active_at
        case LiveSort.COST:
            return -session.usage.cost_usd, -session.active_at
        case LiveSort.ACTIVE:
            return -session.active_at, 0.0


def _has(session: Session, words: list[str]) -> bool:
    text = f"{session.id} {session.preferences.title} {session.platform} {session.key} {session.phase}".casefold()
    if all(word in text for word in words):
        return True
    activity = activity_of(session)
    if activity.kind is ActivityKind.NONE:
        return False
    text = f"{text} {activity.kind} {' '.join(activity.what)}".casefold()
    return all(word in text for word in words)
