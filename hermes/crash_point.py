"""Named places where a test can have the process die as `kill -9` would. Off, and free, unless a test asks for it.

`HERMES_TEST_CRASH="after ToolStarted"` kills the daemon right after the first such record is on disk, `before` right
before it would be written. So every step of a turn can be cut off exactly, not by luck.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.ports import Transaction

WANTED = os.environ.get("HERMES_TEST_CRASH", "")


def crash_at(when: str, batch: Iterable[Transaction]) -> None:
    if not WANTED.startswith(when):
        return
    for transaction in batch:
        for operation in transaction:
            for record in getattr(operation, "records", ()):
                if f"{when} {type(record).__name__}" == WANTED:
                    os.kill(os.getpid(), signal.SIGKILL)
