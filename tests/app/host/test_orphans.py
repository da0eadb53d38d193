"""Reaping of orphans: never a child that somebody waits for."""

from __future__ import annotations

from hermes.app.host.orphans import DeadChild, to_reap

OURS = 7


def test_member_of_a_foreign_session_is_reaped_immediately() -> None:
    assert to_reap([DeadChild(pid=30, session=20)], {}, own_session=OURS, now=0.0) == ([30], {})


def test_session_leaders_and_members_of_our_session_are_not_reaped() -> None:
    dead = [DeadChild(pid=30, session=30), DeadChild(pid=40, session=OURS)]
    assert to_reap(dead, {}, own_session=OURS, now=5.0) == ([], {30: 5.0, 40: 5.0})


def test_unclaimed_child_is_reaped_after_a_while() -> None:
    dead = [DeadChild(pid=30, session=30)]
    assert to_reap(dead, {30: 5.0}, own_session=OURS, now=14.9) == ([], {30: 5.0})
    assert to_reap(dead, {30: 5.0}, own_session=OURS, now=15.0) == ([30], {})


def test_child_reaped_elsewhere_is_forgotten() -> None:
    assert to_reap([], {30: 5.0}, own_session=OURS, now=6.0) == ([], {})
