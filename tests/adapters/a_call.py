"""Tool calls that wait for a person, for tests of whoever shows them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hermes.domain.ids import TurnId
from hermes.domain.session.state import Phase, Session, Turn
from hermes.domain.turn.tool_call import Call, CallState, Gate, Verdict


def waiting(session: Session, turn: str, call: Call | None = None) -> Session:
    """The session, with a turn that waits for a person."""
    asked = call or a_call()
    open_turn = Turn(id=TurnId(turn), accepted_at=session.since, calls=(replace(asked, state=CallState.ASKED),))
    return replace(session, phase=Phase.WAITING, turn=open_turn)


def a_call(**changes: Any) -> Call:
    gate = Gate(verdict=Verdict.ASK, reason="it deletes a directory tree")
    return replace(Call(id="c1", name="terminal", summary="terminal: rm -rf x", gate=gate), **changes)
