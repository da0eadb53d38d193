"""Cost of model calls, and budget checks for a session and a day. Pure.

Token counts come from the provider. Prices are in US dollars per million tokens. A model without a price costs
nothing, so only a token budget limits it.
"""

from __future__ import annotations

from hermes.domain.turn.usage import Price, Usage
from hermes.domain.values import dataclass, replace

MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(tokens=self.tokens + other.tokens, usd=self.usd + other.usd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Budget limits, named like the settings; 0 means no limit."""

    session_tokens: int = 0
    session_usd: float = 0.0
    day_tokens: int = 0
    day_usd: float = 0.0


def costed(usage: Usage, price: Price) -> Usage:
    """Return the usage with its cost. A cost reported by the endpoint is kept."""
    cost_usd = usage.cost_usd or cost_of(usage, price)
    return usage if cost_usd == usage.cost_usd else replace(usage, cost_usd=cost_usd)


def cost_of(usage: Usage, price: Price) -> float:
    """Return the cost in US dollars. Cached tokens count at most as many as prompt tokens."""
    prompt, output = max(usage.prompt_tokens, 0), max(usage.completion_tokens, 0)
    cached = min(max(usage.cached_tokens, 0), prompt)
    cached_price = price.input if price.cached_input is None else price.cached_input
    return ((prompt - cached) * price.input + cached * cached_price + output * price.output) / MILLION


def budget_problem(spent_session: Spent, spent_day: Spent, budget: Budget) -> str:
    """Return why no further model call is allowed, for the person; empty if one is allowed."""
    return _problem("this session has", "session", spent_session, budget.session_tokens, budget.session_usd) or (
        _problem("all sessions of today have", "day", spent_day, budget.day_tokens, budget.day_usd)
    )


def guest_problem(spent_session: Spent, spent_day: Spent, budget: Budget) -> str:
    """Return the same for a guest, whose daily budget is their own."""
    if _is_spent(spent_session, budget.session_tokens, budget.session_usd):
        return "this conversation has used up the guest budget for one conversation; start a new one with /new"
    if _is_spent(spent_day, budget.day_tokens, budget.day_usd):
        return "you have used up the guest budget for today; try again tomorrow or ask the owner for more"
    return ""


def _is_spent(used: Spent, tokens: int, usd: float) -> bool:
    return 0 < tokens <= used.tokens or 0 < usd <= used.usd


def dollars(usd: float) -> str:
    """Return a readable amount, with more digits if it is small: $12.30, $0.0042."""
    return f"${usd:,.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"


def _problem(who: str, span: str, used: Spent, tokens: int, usd: float) -> str:
    other = "start a new session with /new" if span == "session" else "wait until tomorrow"
    if 0 < tokens <= used.tokens:
        what = f"used {used.tokens:,} tokens of a budget of {tokens:,}"
        return f"{who} {what}; raise budget.{span}_tokens, or {other}"
    if 0 < usd <= used.usd:
        what = f"cost {dollars(used.usd)} of a budget of {dollars(usd)}"
        return f"{who} {what}; raise budget.{span}_usd, or {other}"
    return ""
