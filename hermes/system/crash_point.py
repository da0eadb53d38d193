"""Named points where a test can send a signal to the process. They do nothing unless a test sets a variable.

`HERMES_TEST_CRASH="after ToolStarted"` kills the daemon right after the first such record (or journal operation, such
as `MarkDelivered`) is on disk. `before ...` kills it right before the write, and the name of a point when it is
reached. So a test can interrupt every step of a turn, a start and a stop. `HERMES_TEST_CRASH_SIGNAL` names another
signal than KILL. The signal is sent once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.ports.storage import Transaction

_wanted = os.environ.get("HERMES_TEST_CRASH", "")
_signal = signal.Signals["SIG" + os.environ.get("HERMES_TEST_CRASH_SIGNAL", "KILL")]


def reach(point: str) -> None:
    if point == _wanted:
        _strike()


def crash_at(when: str, batch: Iterable[Transaction]) -> None:
    if not _wanted.startswith(when):
        return
    for transaction in batch:
        for operation in transaction:
            for each in (operation, *getattr(operation, "records", ())):
                if f"{when} {type(each).__name__}" == _wanted:
                    _strike()
                    return


def _strike() -> None:
    global _wanted  # noqa: PLW0603 - sent once per process
    _wanted = ""
    os.kill(os.getpid(), _signal)
