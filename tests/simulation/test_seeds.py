"""Hundreds of simulated lives: faults on, then off, then everything drains and the judge finds nothing.

HERMES_TEST_SEEDS says how many (spread over all cores when they are many), HERMES_TEST_SEED runs one alone and shows
its trace.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.simulation.run import brief, run

SEEDS = int(os.environ.get("HERMES_TEST_SEEDS", "300"))
SEED = os.environ.get("HERMES_TEST_SEED", "")
ALONE = 1000  # as many run in this process
CHUNK = 100
SHOWN = 5  # failing seeds in the report

pytestmark = pytest.mark.timeout(60 + SEEDS)


def test_whatever_fails_nothing_is_lost_or_doubled_and_everything_drains() -> None:
    if SEED:
        print("\n".join(run(int(SEED)).trace))
    seeds = [int(SEED)] if SEED else range(SEEDS)
    failed = {seed: violations for seed, _, violations in _judged(seeds) if violations}
    print(f"simulation: {len(seeds)} seeds, {len(failed)} failed")
    assert not failed, _report(failed)


def test_a_crashed_session_comes_back_though_its_mail_goes_elsewhere_by_now() -> None:
    """It is deleted by its key's first name meanwhile, and whoever writes gets a fresh one."""
    assert run(19280).violations == ()


@pytest.mark.parametrize("seed", range(5))
def test_the_same_seed_gives_the_same_trace(seed: int) -> None:
    first, second = run(seed), run(seed)
    assert first.trace == second.trace
    assert first.digest == second.digest


def test_another_seed_gives_another_trace() -> None:
    assert len({run(seed).digest for seed in range(5)}) == 5


def test_the_same_seed_gives_the_same_trace_in_another_process() -> None:
    """Where strings hash otherwise, and objects lie elsewhere."""
    with _processes(1) as processes:
        elsewhere = list(processes.map(brief, range(3)))
    assert elsewhere == [brief(seed) for seed in range(3)]


def _judged(seeds: Sequence[int]) -> Iterable[tuple[int, str, list[str]]]:
    if len(seeds) <= ALONE:
        return map(brief, seeds)
    with _processes(os.cpu_count()) as processes:
        return list(processes.map(brief, seeds, chunksize=CHUNK))


def _processes(number: int | None) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(number, mp_context=multiprocessing.get_context("spawn"))


def _report(failed: Mapping[int, list[str]]) -> str:
    lines = [f"{len(failed)} seeds failed: {list(failed)[:50]}"]
    for seed, violations in list(failed.items())[:SHOWN]:
        lines += [f"seed {seed}:", *(f"  {violation}" for violation in violations[:10])]
        lines.append(f"  again: HERMES_TEST_SEED={seed} pytest -s tests/simulation/test_seeds.py -k whatever")
    return "\n".join(lines)
