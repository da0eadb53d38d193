"""What the tests of the actor kernel share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

DEADLINE_S = 30.0


@contextmanager
def hasty_threads() -> Iterator[None]:
    """Threads take turns so often that they meet at every instruction."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)
