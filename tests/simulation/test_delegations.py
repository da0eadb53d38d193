"""Simulated subagents: each duty has one session, each call its results once, and nobody works on for nobody.

HERMES_TEST_SEEDS says how many, HERMES_TEST_SEED runs one alone and shows its trace.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.simulation.delegations import brief_delegations, run_delegations

SEEDS = int(os.environ.get("HERMES_TEST_SEEDS", "20"))
SEED = os.environ.get("HERMES_TEST_SEED", "")
ALONE = 100  # as many run in this process

pytestmark = pytest.mark.timeout(60 + 2 * SEEDS)


def test_each_subagent_starts_once_and_answers_once_whatever_fails() -> None:
    if SEED:
        print("\n".join(run_delegations(int(SEED)).trace))
    found = list(_judged([int(SEED)] if SEED else range(SEEDS)))
    failed = {seed: violations for seed, _, _, violations in found if violations}
    children, results = sum(each[1] for each in found), sum(each[2] for each in found)
    print(f"subagents: {len(found)} seeds, {children} subagents, {results} results, {len(failed)} failed")
    assert not failed, "\n".join(f"seed {seed}: {violations[:5]}" for seed, violations in list(failed.items())[:10])
    assert results > 5 * len(found) or SEED


def _judged(seeds: Iterable[int]) -> Iterable[tuple[int, int, int, list[str]]]:
    seeds = list(seeds)
    if len(seeds) <= ALONE:
        return map(brief_delegations, seeds)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as processes:
        return list(processes.map(brief_delegations, seeds, chunksize=25))
