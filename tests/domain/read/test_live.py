"""Order and filter of live sessions."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.domain.ids import SessionId
from hermes.domain.read.live import LiveQuery, LiveSession, LiveSort, ranked, step_age_s
from hermes.domain.session.state import Phase, Preferences
from hermes.domain.turn.usage import Usage
from hermes.domain.values import replace
from tests.support.fakes import NOW, a_session


def live(
    name: str, phase: Phase = Phase.IDLE, *, mailbox: int = 0, step: float | None = None, **more: Any
) -> LiveSession:
    session = replace(a_session(name), phase=phase, **more)
    return LiveSession(session=session, mailbox=mailbox, step_age_s=step)


SESSIONS = [
    live("idle", active_at=NOW - 1, usage=Usage(prompt_tokens=10, cost_usd=2.0)),
    live(
        "running", Phase.RUNNING, mailbox=1, step=3.0, active_at=NOW - 2, preferences=Preferences(title="Big Build")
    ),
    live("waiting", Phase.WAITING, since=NOW - 60, active_at=NOW - 3, usage=Usage(completion_tokens=20)),
    live("interrupted", Phase.RESUME_PENDING, since=NOW - 5, mailbox=4, active_at=NOW - 4),
]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        (LiveSort.STATE, ["waiting", "running", "interrupted", "idle"]),
        (LiveSort.AGE, ["waiting", "interrupted", "running", "idle"]),
        (LiveSort.MAIL, ["interrupted", "running", "idle", "waiting"]),
        (LiveSort.TOKENS, ["waiting", "idle", "running", "interrupted"]),
        (LiveSort.COST, ["idle", "running", "waiting", "interrupted"]),
        (LiveSort.ACTIVE, ["idle", "running", "waiting", "interrupted"]),
    ],
)
def test_sessions_are_listed_in_the_chosen_order(sort: LiveSort, order: list[str]) -> None:
    listed, matching = ranked(SESSIONS, LiveQuery(sort=sort), NOW)
    assert [each.session.id for each in listed] == order
    assert matching == 4


def test_limit_cuts_the_list_but_not_the_count() -> None:
    listed, matching = ranked(SESSIONS, LiveQuery(limit=1), NOW)
    assert ([each.session.id for each in listed], matching) == ([SessionId("waiting")], 4)


def test_busy_leaves_out_sessions_without_work() -> None:
    listed, matching = ranked(SESSIONS, LiveQuery(is_busy=True), NOW)
    assert "idle" not in {each.session.id for each in listed}
    assert matching == 3


@pytest.mark.parametrize(
    ("words", "found"), [("BIG build", {"running"}), ("waiting", {"waiting"}), ("big idle", set())]
)
def test_every_word_of_the_filter_must_occur(words: str, found: set[str]) -> None:
    listed, _ = ranked(SESSIONS, LiveQuery(find=words), NOW)
    assert {each.session.id for each in listed} == found


def test_step_of_a_running_session_is_its_newest_work_and_a_wait_counts_from_its_phase() -> None:
    assert step_age_s(SESSIONS[1], NOW) == 3.0
    assert step_age_s(SESSIONS[2], NOW) == 60.0
