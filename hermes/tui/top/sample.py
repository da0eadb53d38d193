"""Sample of the running daemon, as `GET /live` of the admin socket returns it."""

from __future__ import annotations

from typing import Any

import msgspec


class TokenUse(msgspec.Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float = 0.0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


class SessionRow(msgspec.Struct, frozen=True):
    id: str
    phase: str
    platform: str = ""
    title: str = ""
    doing: str = "none"
    what: list[str] = []
    step: int = 0
    step_age_s: float = 0.0
    mailbox: int = 0
    queued: int = 0
    turn_id: str | None = None
    turns: int = 0
    usage: TokenUse = TokenUse()
    active_at: float = 0.0
    problem: str = ""


class ActorRow(msgspec.Struct, frozen=True):
    kind: str
    name: str
    state: str
    mailbox: int = 0
    oldest_s: float = 0.0
    handled: int = 0
    slowest_s: float = 0.0
    age_s: float = 0.0
    last_error: str = ""


class PlatformRow(msgspec.Struct, frozen=True):
    name: str
    state: str
    problem: str = ""


class RunningProcess(msgspec.Struct, frozen=True):
    id: str
    session_id: str
    command: str
    pid: int | None = None
    age_s: float = 0.0
    cpu_s: float = 0.0
    memory_bytes: int = 0
    output_bytes: int = 0


class Sample(msgspec.Struct, frozen=True):
    """Unknown fields are ignored and missing ones have defaults: the daemon may be another version."""

    at: float
    version: str = ""
    ready: bool = True
    reason: str = ""
    uptime_s: float = 0.0
    cpu_s: float = 0.0
    memory_bytes: int = 0
    sessions_stored: int = 0
    turns_running: int = 0
    turns_calling: int = 0
    turns_ended: dict[str, int] = {}
    usage: TokenUse = TokenUse()
    commits: int = 0
    commits_took_s: float = 0.0
    transactions: int = 0
    waiting_writes: int = 0
    outbox: int = 0
    dead_letters: int = 0
    loop_lag_s: list[float] = []
    phases: dict[str, int] = {}
    sessions: list[SessionRow] = []
    matching: int = 0
    actors: list[ActorRow] = []
    platforms: list[PlatformRow] = []
    processes: list[RunningProcess] = []


def sample_of(answer: Any) -> Sample:
    return msgspec.convert(answer, Sample, strict=False)
