"""Health of the connection to a server: backoff, parking and the circuit breaker. Pure.

A server is started when it is used. After a failed start the next one waits, longer each time; after too many in a
row the server is parked, and one use in a while probes it. Calls that fail one after the other open the circuit.
"""

from __future__ import annotations

from enum import StrEnum

from hermes.domain.backoff import backoff_s
from hermes.domain.values import dataclass, replace

STARTS_MOST = 5  # failed starts in a row before the server is parked
PROBE_S = 300.0  # a parked server may be tried again after this time
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
CALLS_MOST = 3  # failed calls in a row that open the circuit
OPEN_S = 60.0  # time for which an open circuit refuses calls


class McpState(StrEnum):
    STOPPED = "stopped"  # nobody uses it
    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"  # its last start failed; it can be tried again soon
    PARKED = "parked"
    OPEN = "circuit_open"
    LOGIN = "login_needed"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkHealth:
    state: McpState = McpState.STOPPED
    failed_starts: int = 0
    failed_calls: int = 0
    not_before: float = 0.0  # clock time of the next try
    problem: str = ""

    def refusal(self, now: float) -> str:
        """Return why a call cannot be tried now; empty if it can."""
        if self.state is McpState.LOGIN:
            return self.problem
        if self.state in (McpState.WAITING, McpState.PARKED, McpState.OPEN) and now < self.not_before:
            return f"{self.problem}; the next try is possible in {max(1, round(self.not_before - now))} s"
        return ""


def start_failed(health: LinkHealth, problem: str, now: float, jitter: float, *, final: bool = False) -> LinkHealth:
    """Return the health after a failed start. `final`: trying again soon cannot help."""
    failed = health.failed_starts + 1
    if final or failed > STARTS_MOST:
        return replace(health, state=McpState.PARKED, failed_starts=failed, not_before=now + PROBE_S, problem=problem)
    pause_s = backoff_s(failed, first_s=FIRST_PAUSE_S, max_s=LONGEST_PAUSE_S, jitter=jitter)
    return replace(health, state=McpState.WAITING, failed_starts=failed, not_before=now + pause_s, problem=problem)


def login_needed(health: LinkHealth, problem: str) -> LinkHealth:
    return replace(health, state=McpState.LOGIN, problem=problem)


def started(health: LinkHealth) -> LinkHealth:
    """Return the health after a start. Earlier failures count until a call succeeds."""
    return replace(health, state=McpState.RUNNING, not_before=0.0, problem="")


def stopped(health: LinkHealth) -> LinkHealth:
    return replace(health, state=McpState.STOPPED, problem="")


def died(health: LinkHealth, problem: str, now: float, jitter: float) -> LinkHealth:
    """Return the health after the end of a connection that had been open."""
    return start_failed(health, problem, now, jitter)


def call_succeeded(health: LinkHealth) -> LinkHealth:
    return replace(health, failed_starts=0, failed_calls=0)


def call_failed(health: LinkHealth, problem: str, now: float) -> LinkHealth:
    """Return the health after a call without an answer. An answer that reports an error is not a failure."""
    failed = health.failed_calls + 1
    if failed < CALLS_MOST:
        return replace(health, failed_calls=failed)
    text = f"{failed} calls in a row had no answer ({problem})"
    return replace(health, state=McpState.OPEN, failed_calls=0, not_before=now + OPEN_S, problem=text)
