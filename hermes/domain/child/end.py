"""End of a child session: it ends with its work, in the same transaction. Pure."""

from __future__ import annotations

from typing import Final

from hermes.domain.cause.cause import EndCause
from hermes.domain.records import Ended, TurnFailed, TurnFinished
from hermes.domain.session.builder import change_phase
from hermes.domain.session.protocol import Step
from hermes.domain.session.state import Phase, is_pending

_DONE: Final = "its work is done"
_FAILED: Final = "its work failed"


def end_when_done(decided: Step, now: float) -> Step:
    """End a child session with its last turn."""
    session = decided.session
    if session.assignment is None or session.phase is not Phase.IDLE or is_pending(session):
        return decided
    last = next((each for each in reversed(decided.records) if isinstance(each, TurnFinished | TurnFailed)), None)
    if last is None:
        return decided
    reason = _DONE if isinstance(last, TurnFinished) else _FAILED
    return change_phase(decided, Ended(at=now, reason=reason, cause=EndCause.DONE))
