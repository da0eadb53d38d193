"""Ages and times as the command line writes them, at a fixed moment."""

from __future__ import annotations

import time

import pytest
from freezegun import freeze_time

from hermes.cli.output import ago, moment


@pytest.mark.parametrize(
    ("at", "text"),
    [
        ("2026-03-01 11:59:58", "2 s ago"),
        ("2026-03-01 11:58:30", "1 min ago"),
        ("2026-03-01 09:00:01", "2 h ago"),
        ("2026-02-26 12:00:00", "3 d ago"),
        ("2026-03-01 12:00:30", "0 s ago"),  # a clock that was set back
    ],
)
def test_age_is_given_in_one_unit(at: str, text: str) -> None:
    with freeze_time(at):
        then = time.time()
    with freeze_time("2026-03-01 12:00:00"):
        assert ago(then) == text


def test_moment_names_its_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        with freeze_time("2026-07-01 10:00:00"):
            now = time.time()
        assert moment(now) == "2026-07-01 12:00:00 CEST"
    finally:
        monkeypatch.undo()
        time.tzset()
