"""Wall clock that a test can move. It is `time.time` unless a test sets a variable.

`HERMES_TEST_CLOCK=FILE` adds the number of seconds in that file, which is read each time, so that a test can let days
pass in a real daemon. Periodic work then runs forty times as often (`pace`).
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
    with suppress(OSError, ValueError):  # not written yet, or being written
        return float(Path(FILE).read_text("ascii"))
    return 0.0
