"""Settings of work beside and within conversations: subagents and scripts."""

from __future__ import annotations

from hermes.config.schema import setting
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationConfig:
    model: str = setting("", live=True)
    max_iterations: int = setting(50, least=1, most=10_000, live=True)
    max_concurrent_children: int = setting(3, least=1, most=1000, live=True)
    max_spawn_depth: int = setting(1, least=1, most=5, live=True)
    approvals: str = setting("ask", choices=("ask", "deny"), live=True)
    on_parent_end: str = setting("end", choices=("end", "detach"), live=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeExecutionConfig:
    timeout: float = setting(300.0, least=1, most=86_400)
    max_tool_calls: int = setting(50, least=1, most=10_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalsConfig:
    max_turns: int = setting(20, least=0, most=10_000, live=True)
    max_usd: float = setting(0.0, least=0, most=1_000_000, live=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointsConfig:
    enabled: bool = setting(True)
    commands: bool = setting(False)
    max_snapshots: int = setting(50, least=1, most=10_000)
    max_files: int = setting(20_000, least=1, most=10_000_000)
    max_file_mb: int = setting(10, least=1, most=10_000)
    max_total_mb: int = setting(500, least=1, most=1_000_000)
