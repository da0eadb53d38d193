"""Permissions of roles: the answers that a role may give, and the grants that apply to it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.domain.access.role import Role
from hermes.domain.errors import BadInputError
from hermes.domain.ids import SessionId
from hermes.domain.turn.tool_call import Approval, Call

CLARIFY = "clarify"  # stands for the rules of a call that only asks the person something
DENY = Approval.DENY
NEEDS_APPROVER = "needs_approver"  # error code


def rules_of(call: Call) -> tuple[str, ...]:
    """Return the rules that an approval of a waiting call would cover."""
    return (CLARIFY,) if call.question else call.gate.rules


def needs_approver(session: SessionId) -> BadInputError:
    """Return the error for a person who may not approve this call."""
    return BadInputError(
        "only the owner and the admins of this Hermes may approve this. They were asked, where they can be reached; "
        f"the owner decides with `hermes approve {session}`. /deny or /stop calls it off",
        code=NEEDS_APPROVER,
    )


def may_answer(role: Role, rules: tuple[str, ...], choice: str) -> bool:
    """Return whether a role may give that answer. Only the owner and admins may approve."""
    return rules == (CLARIFY,) or choice == DENY or role.approves


def is_routed(role: Role, rules: tuple[str, ...]) -> bool:
    """Return whether the question of a turn with that role goes to the owner and the admins."""
    return rules != (CLARIFY,) and not role.approves


def grants_for(role: Role, *grants: Iterable[str]) -> frozenset[str]:
    """Return the standing grants that apply to a role. None apply to a guest."""
    return frozenset() if role is Role.GUEST else frozenset().union(*grants)


def is_unasked(role: Role, *, yolo: bool) -> bool:
    """Return whether a turn of that role runs without approvals. Roles that may not approve always need one."""
    return yolo and role.approves
