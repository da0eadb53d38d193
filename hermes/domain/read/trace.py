"""Values of a trace: a message, from its platform id to the messages that were sent in reply."""

from __future__ import annotations

from enum import StrEnum

from hermes.domain.ids import InboundKey, SessionId, TurnId
from hermes.domain.values import dataclass


class TraceState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    ASKING = "asking"  # a question is open
    INTERRUPTED = "interrupted"
    SUSPENDED = "suspended"
    ANSWERED = "answered"  # the client fetches the answer
    STOPPED = "stopped"
    FAILED = "failed"
    SENDING = "sending"  # the answer is in the outbox
    SENT = "sent"
    UNDELIVERED = "undelivered"  # the answer is a dead letter
    TAKEN = "taken"  # it did not become a turn, for example a command


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStep:
    at: float  # when it began
    what: str
    detail: str = ""
    took_s: float | None = None  # None: it takes no time, or has not ended
    problem: str = ""  # not empty: a gap, or something that is missing


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLine:
    """One inbound message. What became part of another turn has that turn's steps from there on."""

    at: float  # when it was accepted
    session: SessionId  # that it is in now
    turn: TurnId
    state: TraceState
    platform: str
    inbound: InboundKey | None = None  # None: its source has no ids
    into: TurnId | None = None  # the turn that it became part of
    attempts: int = 0
    interruptions: int = 0
    model_calls: int = 0  # that were answered
    tool_calls: int = 0
    took_s: float | None = None  # until its turn ended
    sent: tuple[str, ...] = ()  # the platform's ids of the messages that were sent in return
    steps: tuple[TraceStep, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(step.problem for step in self.steps if step.problem)
