"""Tokens and money that model calls cost."""

from __future__ import annotations

from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Usage that the provider reports. `prompt_tokens` includes the cached ones."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_usd=self.cost_usd + other.cost_usd,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Prices in US dollars per million tokens."""

    input: float = 0.0
    cached_input: float | None = None  # None: same as input
    output: float = 0.0
