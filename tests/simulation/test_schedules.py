"""Simulated schedules: each occurrence has one row, each run one session and one script, each report one message.

HERMES_TEST_SEEDS says how many, HERMES_TEST_SEED runs one alone and shows its trace.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.simulation.schedules import brief_schedules, run_schedules

SEEDS = int(os.environ.get("HERMES_TEST_SEEDS", "20"))
SEED = os.environ.get("HERMES_TEST_SEED", "")
ALONE = 100  # as many run in this process

pytestmark = pytest.mark.timeout(60 + 2 * SEEDS)


def test_each_occurrence_comes_once_whatever_fails() -> None:
    if SEED:
        print("\n".join(run_schedules(int(SEED)).trace))
    found = list(_judged([int(SEED)] if SEED else range(SEEDS)))
    failed = {seed: violations for seed, _, violations in found if violations}
    print(f"schedules: {len(found)} seeds, {sum(runs for _, runs, _ in found)} runs, {len(failed)} failed")
    assert not failed, "\n".join(f"seed {seed}: {violations[:5]}" for seed, violations in list(failed.items())[:10])
    assert sum(runs for _, runs, _ in found) >= 2 * len(found) or SEED


def _judged(seeds: Iterable[int]) -> Iterable[tuple[int, int, list[str]]]:
    seeds = list(seeds)
    if len(seeds) <= ALONE:
        return map(brief_schedules, seeds)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as processes:
        return list(processes.map(brief_schedules, seeds, chunksize=25))
