"""Simulated memory: each entry is there once, for its person alone, and log and files agree.

HERMES_TEST_SEEDS says how many, HERMES_TEST_SEED runs one alone and shows its trace.
"""

from __future__ import annotations

import os

import pytest

from tests.simulation.memories import run_memories

SEEDS = int(os.environ.get("HERMES_TEST_SEEDS", "60"))
SEED = os.environ.get("HERMES_TEST_SEED", "")

pytestmark = pytest.mark.timeout(60 + SEEDS)


def test_each_entry_is_kept_once_whatever_fails() -> None:
    failed = {}
    writes = kills = 0
    for seed in [int(SEED)] if SEED else range(SEEDS):
        verdict = run_memories(seed)
        writes += verdict.writes
        kills += sum("killed" in line for line in verdict.trace)
        if verdict.violations:
            failed[seed] = verdict.violations[:5]
        if SEED:
            print("\n".join(verdict.trace))
    assert not failed
    assert (writes > 10 * SEEDS and kills > SEEDS) or SEED
