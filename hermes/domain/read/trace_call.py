"""Steps of a trace about a tool call."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.domain.read.trace import TraceStep
from hermes.domain.turn.tool_call import Call, JudgeVerdict


def named(call: Call) -> str:
    """Return a call in one line: its tool and what it does."""
    if call.summary.startswith(call.name):
        return call.summary
    return ": ".join(filter(None, (call.name, call.summary)))


def judged(calls: Iterable[Call], at: float) -> list[TraceStep]:
    """Return a step for each call that a model judged."""
    return [TraceStep(at=at, what="judged", detail=_detail(call)) for call in calls if call.judgement is not None]


def _detail(call: Call) -> str:
    found = call.judgement
    assert found is not None
    said = f"{found.verdict} by {found.model}"
    if found.verdict in (JudgeVerdict.APPROVE, JudgeVerdict.ASK):
        said += f", confidence {found.confidence:.2f}"
    return f"{named(call)}: {said}" + (f": {found.reason}" if found.reason else "")
