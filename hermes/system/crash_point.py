"""Named places where a test can have the process hit by a signal. Off, and free, unless a test asks for it.

`HERMES_TEST_CRASH="after ToolStarted"` kills the daemon right after the first such record (or operation of the
journal: `MarkDelivered`) is on disk, `before` right before it would be written, and the name of one of POINTS when it
gets there. So every step of a turn, of a start and of a stop can be cut off exactly, not by luck.
`HERMES_TEST_CRASH_SIGNAL` names another signal than KILL; whichever it is comes once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hermes.ports.storage import Transaction

POINTS: Final = (
    "start: locked",
    "start: store open",
    "start: actors there",
    "start: serving",
    "start: ready",
    "http: received",
    "chat: received",
    "chat: taken, not confirmed",
    "turn: about to ask the model",
    "turn: in the middle of an answer",
    "turn: about to run a tool",
    "turn: a tool has run",
    "reply: about to be sent",
    "reply: sent",
    "reply: shown, not noted",
    "session: about to leave memory",
    "session: gone from memory",
    "stop: asked",
    "stop: intake closed",
    "stop: marked",
    "stop: drained",
    "stop: servers closed",
    "stop: actors gone",
    "stop: clean",
    "stop: over",
)

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
    global _wanted  # noqa: PLW0603 - once is enough, and this is the process's own fate
    _wanted = ""
    os.kill(os.getpid(), _signal)
