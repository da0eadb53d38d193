"""Waiting for a condition: the only two ways in which tests wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

_SPIN_S = 0.05  # it yields to the loop for that long before it sleeps between two checks


async def until(condition: Callable[[], object], *, rounds: int = 1, within_s: float = 30.0) -> None:
    """Return when the condition has held for this many rounds of the loop in a row."""
    held, started = 0, time.monotonic()
    try:
        async with asyncio.timeout(within_s):
            while held < rounds:
                spins = held or time.monotonic() - started < _SPIN_S
                await asyncio.sleep(0 if spins else 0.005)
                held = held + 1 if condition() else 0
    except TimeoutError:
        raise AssertionError(f"did not become true within {within_s} s: {condition}") from None


def eventually(condition: Callable[..., Any], within_s: float = 40.0) -> Any:
    """Return the first true value of the condition."""
    deadline = time.monotonic() + within_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"did not become true within {within_s} s: {condition}")
        time.sleep(0.01)
    return value
