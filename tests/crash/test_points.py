"""SIGKILL, SIGTERM and a SIGSTOP of half a minute at each named point of a turn, a start and a stop.

Each is run against the real daemon with an HTTP client, a chat platform and a model, and judged by the one judge of
all suites. What differs between Telegram and Slack is struck on both. What is stopped costs nothing, so that half of
those wait side by side.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.crash.scenario import ALL_POINTS, CHAT_POINTS, CrashScenario

FEW = ("chat: taken, not confirmed", "reply: sent")  # through Slack, beside the kills: CI has to end
NOT_STOPPED = [
    (point, "telegram")
    for point in ("before MarkDelivered", "http: received", "chat: received", "session: gone from memory")
]
POINTS = tuple(filter(None, os.environ.get("HERMES_TEST_POINTS", "").split(";"))) or ALL_POINTS
STOPPED_S = float(os.environ.get("HERMES_TEST_STOPPED_S", "30"))

pytestmark = pytest.mark.timeout(900)


def go_through(cases: Iterable[tuple[str, str]], strikes: signal.Signals, folder: Path, *, at_once: int) -> list[str]:
    """Points, each with a chat platform."""

    def one(number: int, case: tuple[str, str]) -> list[str]:
        (point, platform), own = case, folder / str(number)
        own.mkdir()
        streams = platform == "slack" or strikes is not signal.SIGTERM
        ordeal = CrashScenario(point, strikes, own, platform=platform, streams=streams, stopped_s=STOPPED_S)
        try:
            return [f"{point}, {platform}: {each}" for each in ordeal.run()]
        except Exception as error:  # noqa: BLE001 - one bad point must not hide the others
            return [f"{point}, {platform}: {error!r}"]

    with ThreadPoolExecutor(at_once) as pool:
        return [each for found in pool.map(one, itertools.count(), cases) for each in found]


def both(points: Iterable[str]) -> list[tuple[str, str]]:
    """Through Telegram all of the points, through Slack these."""
    return [*((point, "telegram") for point in POINTS), *((point, "slack") for point in points if point in POINTS)]


def test_a_kill_at_any_point_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    assert go_through(both(CHAT_POINTS), signal.SIGKILL, tmp_path, at_once=4) == []


def test_a_stop_at_any_point_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    assert go_through(both(FEW), signal.SIGTERM, tmp_path, at_once=4) == []


def test_a_process_that_is_stopped_for_half_a_minute_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    cases = [case for case in both(FEW) if case not in NOT_STOPPED]
    assert go_through(cases, signal.SIGSTOP, tmp_path, at_once=-(-len(cases) // 2)) == []
