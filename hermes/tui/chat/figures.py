"""Figures of a session for the status line, the state of the connection, and the reply to a slash command."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from hermes.domain.values import dataclass, replace


class LinkState(StrEnum):
    CONNECTING = "connecting"
    ONLINE = "online"
    AWAY = "away"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the daemon reports about the session beside its messages."""

    title: str = ""
    phase: str = "new"
    model: str = ""
    tokens: int = 0
    cost_usd: float = 0.0
    context_tokens: int = 0
    context_window: int = 0
    processes: tuple[Mapping[str, Any], ...] = ()
    agents: tuple[Mapping[str, Any], ...] = ()  # subagents of the session that have not ended

    @property
    def context_percent(self) -> int | None:
        return self.context_tokens * 100 // self.context_window if self.context_window else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Reply of the daemon to a slash command. `choices`: it asks back."""

    ok: bool
    text: str
    choices: tuple[str, ...] = ()


def with_session(figures: Figures, session: Mapping[str, Any], preferences: Mapping[str, Any]) -> Figures:
    usage = session.get("usage") or {}
    return replace(
        figures,
        title=str(session.get("title") or ""),
        phase=str(session.get("phase") or ""),
        model=str(preferences.get("model") or "") or figures.model,
        tokens=int(usage.get("prompt_tokens") or 0) + int(usage.get("completion_tokens") or 0),
        cost_usd=float(usage.get("cost_usd") or 0.0),
        context_tokens=int(session.get("context_tokens") or 0),
    )
