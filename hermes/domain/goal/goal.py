"""Goal of a conversation: what it pursues over several turns, and how far it may go. Pure."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Final

from hermes.domain.ids import TurnId
from hermes.domain.values import dataclass, replace

MAX_CHARS: Final = 4_000
_MAX_NOTE: Final = 500


class GoalState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"  # by a person, or after a turn that failed or was stopped
    DONE = "done"
    SPENT = "spent"  # its turns or its money are used up


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    text: str
    state: GoalState = GoalState.ACTIVE
    max_turns: int = 0  # that it may start by itself; 0: no limit
    max_usd: float = 0.0
    turns: int = 0  # that it has started by itself
    usd_before: float = 0.0  # what the conversation had cost when the goal was set
    note: str = ""  # of the judge, about the last turn
    judged: TurnId = TurnId("")  # the last turn that was judged


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalTerms:
    """Limits of a new goal."""

    max_turns: int = 20
    max_usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalVerdict:
    """Opinion of the judge about the conversation after a turn."""

    done: bool
    note: str = ""  # why, and what is missing


def read_goal_verdict(answer: str) -> GoalVerdict:
    """Read a judge's answer. What cannot be read means that the goal is not reached."""
    start, end = answer.find("{"), answer.rfind("}")
    try:
        found = json.loads(answer[start : end + 1])
    except (ValueError, RecursionError):
        return GoalVerdict(done=False)
    if not isinstance(found, dict):
        return GoalVerdict(done=False)
    return GoalVerdict(done=found.get("done") is True, note=" ".join(str(found.get("note", "")).split())[:_MAX_NOTE])


def judged(goal: Goal, verdict: GoalVerdict, turn: TurnId, cost_usd: float) -> Goal:
    """Return the goal after a verdict. ACTIVE means that its next turn starts."""
    after = replace(goal, note=verdict.note, judged=turn)
    if verdict.done:
        return replace(after, state=GoalState.DONE)
    spent_usd = cost_usd - goal.usd_before
    if 0 < goal.max_turns <= goal.turns or 0 < goal.max_usd <= spent_usd:
        return replace(after, state=GoalState.SPENT)
    return replace(after, turns=goal.turns + 1)


def next_message(goal: Goal) -> str:
    """Return the message that continues the work."""
    missing = f" What is missing, according to a review: {goal.note}" if goal.note else ""
    return (
        f"[Automatic: the goal of this conversation is not reached yet.{missing}]\n"
        f"The goal: {goal.text}\n"
        "Continue with the next step. If it cannot be reached, or only the person can go on, say so."
    )


def in_words(goal: Goal) -> str:
    """Return the state for a person."""
    most = f" of {goal.max_turns}" if goal.max_turns else ""
    note = f" {goal.note}" if goal.note else ""
    ends = {
        GoalState.ACTIVE: "is pursued",
        GoalState.PAUSED: "is paused; /goal resume continues it",
        GoalState.DONE: "is reached",
        GoalState.SPENT: "stopped at its limit; /goal resume allows as many turns again",
    }
    return f"The goal {ends[goal.state]}: {goal.text}\nTurns of its own: {goal.turns}{most}.{note}"
