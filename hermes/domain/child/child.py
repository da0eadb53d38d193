"""Child sessions: sessions that another session or the daemon starts, for one purpose and with limited rights.

A child is an ordinary session with an assignment. No person reads it or answers its questions. Its start is a duty:
a fact that is stored with the turn that caused it, and deleted when the child's end has been reported.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Final

from hermes.domain.access.role import Role
from hermes.domain.ids import SessionId, SessionKey, TurnId
from hermes.domain.source import Place, Source
from hermes.domain.turn.usage import Usage
from hermes.domain.values import dataclass

PREFIX: Final = "child:"  # of the names of facts
MAX_LINKS: Final = 5  # children that a session's row names; all of them are in its log


class Purpose(StrEnum):
    """Purpose of a child session."""

    REVIEW = "review"  # reads a conversation and keeps what should last
    DELEGATE = "delegate"  # does a task for a tool call of its parent, which waits for it
    GOAL = "goal"  # judges whether its parent's goal is reached
    BACKGROUND = "background"  # does a task beside its parent, and reports into its chat
    WEBHOOK = "webhook"  # answers an event from another program
    BOOT = "boot"  # does what BOOT.md says, once at each start
    JOB = "job"  # a run of a scheduled job
    CONSOLIDATION = "consolidation"  # merges skills that overlap


class ChildEnd(StrEnum):
    """End of a child session."""

    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"  # there was nothing to do


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Terms of a child session. They never change."""

    purpose: Purpose
    key: str  # under which it was started, once
    parent: SessionId | None = None  # None: the daemon started it
    turn: TurnId | None = None  # of the parent, which caused it
    tools: tuple[str, ...] = ()  # names of the only tools that it has, as far as its person has them
    model: str = ""  # [PROVIDER:]MODEL; empty: the configured one
    max_steps: int = 0  # model calls in a turn; 0: as configured for every turn
    max_tokens: int = 0  # for all of its work; 0: no limit
    max_usd: float = 0.0
    memory: str = ""  # scope of the memory that it uses; empty: that of its person
    asks: bool = False  # its approvals are asked for; else they are denied
    asked_in: Place | None = None  # chat where they are asked for; None: its parent's person sees a notice
    depth: int = 0  # of children above it


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildLink:
    """A child as its parent remembers it."""

    session: SessionId
    purpose: Purpose


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildDuty:
    """Duty to start a child session and to report its end."""

    key: str
    child: SessionId
    purpose: Purpose
    source: Source  # for whom it works, and with whose role
    parent: SessionId | None = None
    turn: TurnId | None = None
    topics: tuple[str, ...] = ()  # what the purpose is limited to
    call: str = ""  # of a tool, which waits for it
    number: int = 0  # of the child among those of the call
    task: str = ""  # in the words of the person; empty: the purpose knows it
    work: str = ""  # what it is to do, in the purpose's own form

    @property
    def fact(self) -> str:
        return PREFIX + self.key

    @property
    def lane(self) -> str:
        """Return what the children have in common that work one after the other."""
        together = self.purpose in (Purpose.DELEGATE, Purpose.BACKGROUND)
        return f"{self.purpose}:{self.parent}" if self.parent and not together else self.key

    @property
    def first_turn(self) -> TurnId:
        """Return the id of the child's first turn."""
        return first_turn(self.key)

    @property
    def report_turn(self) -> TurnId:
        """Return the id of the turn that the report starts in the parent, if it starts one."""
        return first_turn(f"report:{self.key}")

    def encoded(self) -> bytes:
        source = self.source
        who = {"platform": source.platform, "user": source.user, "role": source.role, "name": source.name}
        value = {
            "child": self.child,
            "purpose": self.purpose,
            "parent": self.parent,
            "turn": self.turn,
            "topics": self.topics,
            "source": who,
            "call": self.call,
            "number": self.number,
            "task": self.task,
            **({"work": self.work} if self.work else {}),
        }
        return json.dumps(value).encode()


def decode_duty(name: str, value: bytes) -> ChildDuty:
    """Return the duty in a fact. Raises ValueError if it cannot be read."""
    try:
        return _duty(name, json.loads(value))
    except (KeyError, TypeError) as error:
        raise ValueError(f"{name} is not the duty of a child session") from error


def _duty(name: str, found: Any) -> ChildDuty:
    who = found["source"]
    return ChildDuty(
        key=name.removeprefix(PREFIX),
        child=SessionId(found["child"]),
        purpose=Purpose(found["purpose"]),
        parent=found["parent"] and SessionId(found["parent"]),
        turn=found["turn"] and TurnId(found["turn"]),
        topics=tuple(found["topics"]),
        call=found.get("call", ""),
        number=found.get("number", 0),
        task=found.get("task", ""),
        work=str(found.get("work", "")),
        source=Source(
            platform=who["platform"],
            user=who["user"],
            automatic=True,
            role=who["role"] and Role(who["role"]),
            name=who["name"],
        ),
    )


def first_turn(key: str) -> TurnId:
    """Return the id of the first turn of the child that is started under a key."""
    return TurnId(f"turn_{_digest(key, 16)}")


def child_id(key: str, now: float) -> SessionId:
    """Return the id of the child that is started under a key. It looks like every other session id."""
    return SessionId(f"{datetime.fromtimestamp(now, UTC):%Y%m%d_%H%M%S}_{_digest(key, 4)}")


def child_key(assignment: Assignment, child: SessionId) -> SessionKey:
    """Return the session key of a child. It belongs to no chat."""
    return SessionKey(f"agent:child:{assignment.purpose}:{child}")


def is_spent(assignment: Assignment, used: Usage) -> bool:
    """Return whether the child has used up its budget."""
    tokens = used.prompt_tokens + used.completion_tokens
    return 0 < assignment.max_tokens <= tokens or 0 < assignment.max_usd <= used.cost_usd


def only_tools(assignment: Assignment | None) -> tuple[str, ...] | None:
    """Return the names of a child's only tools. None: no such limit."""
    return None if assignment is None else assignment.tools


def steps(assignment: Assignment | None, most: int) -> int:
    """Return how many model calls a turn may make, of `most` for every turn."""
    return min(most, assignment.max_steps) if assignment is not None and assignment.max_steps else most


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode(), digest_size=size).hexdigest()
