"""What the tests of the actor kernel share."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

DEADLINE_S = 30.0


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - the conditions are of many kinds
            await asyncio.sleep(0.001)


@contextmanager
def hasty_threads() -> Iterator[None]:
    """Threads take turns so often that they meet at every instruction."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)
