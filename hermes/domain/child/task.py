"""Tasks of a delegation, as the model states them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from hermes.domain.child.delegation import MAX_TASKS, WITHHELD
from hermes.domain.errors import BadInputError
from hermes.domain.values import dataclass

MAX_GOAL_CHARS: Final = 8_000
MAX_CONTEXT_CHARS: Final = 100_000
_FIELDS: Final = frozenset({"goal", "context", "role", "model", "toolsets"})


class ChildRole(StrEnum):
    """Role of a subagent."""

    LEAF = "leaf"
    ORCHESTRATOR = "orchestrator"  # may delegate itself, if the depth allows it


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildTask:
    """Task of one subagent."""

    goal: str
    context: str = ""
    role: ChildRole = ChildRole.LEAF
    model: str = ""  # [PROVIDER:]MODEL; empty: as configured
    toolsets: tuple[str, ...] = ()  # names of toolsets or tools; none: all that it may have

    @property
    def message(self) -> str:
        """Return the first message to the subagent."""
        known = f"\n\nWhat you need to know:\n{self.context}" if self.context else ""
        return f"{self.goal}{known}"


def tasks_of(arguments: Mapping[str, Any]) -> tuple[ChildTask, ...]:
    """Return the tasks of a call. Raises BadInputError with what the model has to correct."""
    batch = arguments.get("tasks") or ()
    goal = str(arguments.get("goal") or "").strip()
    if bool(goal) == bool(batch):
        raise BadInputError("give either a goal or tasks; no subagent was started")
    if len(batch) > MAX_TASKS:
        raise BadInputError(f"a call has at most {MAX_TASKS} tasks; no subagent was started")
    if not batch:
        return (_task("the task", {name: arguments[name] for name in _FIELDS if arguments.get(name)}),)
    shared = {name: arguments[name] for name in ("context", "role", "model", "toolsets") if arguments.get(name)}
    return tuple(_task(f"task {number}", {**shared, **each}) for number, each in enumerate(batch, 1))


def _task(where: str, given: Mapping[str, Any]) -> ChildTask:
    if unknown := sorted(set(given) - _FIELDS):
        raise BadInputError(f"{where} has the unknown field {unknown[0]!r}; no subagent was started")
    goal, context = str(given.get("goal") or "").strip(), str(given.get("context") or "").strip()
    if not goal or len(goal) > MAX_GOAL_CHARS:
        raise BadInputError(f"{where} needs a goal of at most {MAX_GOAL_CHARS:,} characters; no subagent was started")
    if len(context) > MAX_CONTEXT_CHARS:
        raise BadInputError(f"{where} has a context above {MAX_CONTEXT_CHARS:,} characters; no subagent was started")
    role = str(given.get("role") or ChildRole.LEAF)
    if role not in set(ChildRole):
        raise BadInputError(f"{where}: the role is leaf or orchestrator; no subagent was started")
    toolsets = given.get("toolsets") or ()
    names = toolsets.split(",") if isinstance(toolsets, str) else toolsets
    return ChildTask(
        goal=goal,
        context=context,
        role=ChildRole(role),
        model=str(given.get("model") or "").strip(),
        toolsets=tuple(str(name).strip() for name in names if str(name).strip()),
    )


def tools_for(task: ChildTask, offered: Mapping[str, str], *, depth: int, max_depth: int) -> tuple[str, ...]:
    """Return the tools of a subagent. `offered`: names and toolsets of those that its parent has.

    `depth`: number of subagents above and including it.
    """
    wanted = set(task.toolsets)
    may_delegate = task.role is ChildRole.ORCHESTRATOR and depth < max_depth
    names = [
        name for name, toolset in offered.items() if name not in WITHHELD and (not wanted or wanted & {name, toolset})
    ]
    return (*names, "delegate_task") if may_delegate and "delegate_task" in offered else tuple(names)
