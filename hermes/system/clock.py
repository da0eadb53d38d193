"""The wall clock, which a test can set. It is `time.time`, and free, unless a test asks for another.

`HERMES_TEST_CLOCK=FILE` adds the number of seconds in that file, read with every look, so that a test can have days
go by in a real daemon. What the daemon does every now and then it does forty times as often then (`pace`).
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

FILE = os.environ.get("HERMES_TEST_CLOCK", "")


def wall() -> float:
    return time.time() + _offset_s() if FILE else time.time()


def pace(seconds: float) -> float:
    return seconds / 40 if FILE else seconds


def _offset_s() -> float:
    with suppress(OSError, ValueError):  # not written yet, or just now
        return float(Path(FILE).read_text("ascii"))
    return 0.0
