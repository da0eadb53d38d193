"""SIGKILL, SIGTERM and a SIGSTOP of half a minute at each named point of a turn, a start and a stop.

Each is run against the real daemon with an HTTP client, a chat platform and a model, and judged by the one judge of
all suites. What is stopped costs nothing, so that half of those wait side by side.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.crash.ordeal import ALL_POINTS, Ordeal

NOT_STOPPED = ("before Discharge", "http: received", "chat: received", "session: gone from memory")  # CI has to end
POINTS = tuple(filter(None, os.environ.get("HERMES_TEST_POINTS", "").split(";"))) or ALL_POINTS
STOPPED_S = float(os.environ.get("HERMES_TEST_STOPPED_S", "30"))

pytestmark = pytest.mark.timeout(900)


def go_through(points: Sequence[str], strikes: signal.Signals, folder: Path, *, at_once: int) -> list[str]:
    def one(number: int, point: str) -> list[str]:
        own = folder / str(number)
        own.mkdir()
        try:
            return [f"{point}: {each}" for each in Ordeal(point, strikes, own, stopped_s=STOPPED_S).run()]
        except Exception as error:  # noqa: BLE001 - one bad point must not hide the others
            return [f"{point}: {error!r}"]

    with ThreadPoolExecutor(at_once) as pool:
        return [each for found in pool.map(one, range(len(points)), points) for each in found]


@pytest.mark.parametrize("strikes", [signal.SIGKILL, signal.SIGTERM], ids=lambda each: each.name)
def test_a_signal_at_any_point_loses_nothing_and_doubles_nothing(strikes: signal.Signals, tmp_path: Path) -> None:
    assert go_through(POINTS, strikes, tmp_path, at_once=4) == []


def test_a_process_that_is_stopped_for_half_a_minute_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    points = [point for point in POINTS if point not in NOT_STOPPED]
    assert go_through(points, signal.SIGSTOP, tmp_path, at_once=-(-len(points) // 2)) == []
