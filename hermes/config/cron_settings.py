"""Settings of scheduled jobs."""

from __future__ import annotations

from hermes.config.schema import setting
from hermes.config.time_zone import zone_complaint
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CronConfig:
    enabled: bool = setting(True, live=True)
    timezone: str = setting("", complaint=zone_complaint, live=True)
    approvals: str = setting("deny", choices=("deny", "ask"), live=True)
    max_parallel_jobs: int = setting(8, least=1, most=10_000)
    jitter_s: float = setting(0.0, least=0, most=86_400, live=True)
    retries: int = setting(0, least=0, most=10, live=True)
    retry_delay_s: float = setting(60.0, least=1, most=3600, live=True)
    keep_runs: int = setting(50, least=1, most=1000, live=True)
    keep_ended_days: float = setting(7.0, least=0, most=3650, live=True)
    wrap_response: bool = setting(True, live=True)
    script_timeout_s: float = setting(3600.0, least=1, most=86_400)
    max_steps: int = setting(0, least=0, most=1000, live=True)
    max_tokens: int = setting(0, least=0, most=1_000_000_000, live=True)
    max_usd: float = setting(0.0, least=0, most=100_000, live=True)
