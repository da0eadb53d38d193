"""Tool calls that a script makes while its own call runs. They have the same gates, approvals and records. Pure.

The model does not see them: it sees the output of the script, or after a crash the list of what ran.
"""

from __future__ import annotations

from hermes.domain.records import InnerCalled
from hermes.domain.session import calls
from hermes.domain.session.builder import refuse, then
from hermes.domain.session.protocol import CallInside, EndInside, Step, TurnLimits
from hermes.domain.session.state import Phase, Session
from hermes.domain.turn.tool_call import Call, CallState


def call_inside(session: Session, event: CallInside, now: float, limits: TurnLimits) -> Step:
    """Record a script's call, and start it, ask for it or refuse it."""
    script = _open_call(session, event.turn, event.call.within)
    if script is None or script.state is not CallState.STARTED or session.phase is not Phase.RUNNING:
        return refuse(session, f"call {event.call.within} of session {session.id} runs no script")
    called = InnerCalled(at=now, turn=event.turn, call=event.call, arguments=event.arguments)
    return calls.advance(then(Step(session=session), called), now, limits)


def end_inside(session: Session, event: EndInside, now: float, limits: TurnLimits) -> Step:
    call = _open_call(session, event.turn, event.call)
    if call is None or not call.within or call.state is not CallState.STARTED:
        return refuse(session, f"call {event.call} of session {session.id} does not run")
    return calls.advance(calls.finish_inner(Step(session=session), call, event, now), now, limits)


def _open_call(session: Session, turn: str, name: str) -> Call | None:
    if session.turn is None or session.turn.id != turn:
        return None
    return next((call for call in session.turn.calls if call.id == name), None)
