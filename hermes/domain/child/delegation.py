"""Delegation: child sessions that start with a tool call, which waits for them. Pure.

The records of their start are stored with that of the call. A call that runs again after a restart finds them there,
so no child is started twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes.domain.child.child import Purpose, child_id
from hermes.domain.records import ChildStarted
from hermes.domain.session.turn_role import role_of_turn

if TYPE_CHECKING:
    from hermes.domain.ids import SessionId, TurnId
    from hermes.domain.session.protocol import Step
    from hermes.domain.turn.tool_call import Call

# Tools that no subagent has: they address the person, or start further work.
WITHHELD: Final = frozenset({"delegate_task", "clarify", "memory", "send_message", "execute_code", "cronjob"})
MAX_TASKS: Final = 200  # in one call
MAX_RESULT_CHARS: Final = 24_000  # of all results of a call together


def child_key_of(session: SessionId, turn: TurnId, call: str, number: int) -> str:
    return f"{Purpose.DELEGATE}:{session}:{turn}:{call}:{number}"


def started(before: Step, call: Call, now: float) -> tuple[ChildStarted, ...]:
    """Return the records of the children that start with the call."""
    session, turn = before.session, before.session.turn
    assert turn is not None
    keys = [child_key_of(session.id, turn.id, call.id, number) for number in range(call.delegates)]
    return tuple(
        ChildStarted(
            at=now,
            turn=turn.id,
            child=child_id(key, now),
            key=key,
            purpose=Purpose.DELEGATE,
            by=turn.by,
            name=turn.name,
            role=role_of_turn(session),
            call=call.id,
            number=number,
        )
        for number, key in enumerate(keys[len(call.children) :], len(call.children))
    )
