"""Chart of the budgets as an SVG: for each budget a bar of how much of it is used."""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import escape

from bench.budgets import BUDGETS, Budget

_ROW, _LABEL, _BAR, _RIGHT = 20, 390, 300, 120
_FULL = 0.8  # where on the bar's width a budget ends
_KEPT, _MISSED, _RAIL = "#2f8f5b", "#c0392b", "#8884"
_STYLE = "font: 12px system-ui, sans-serif; fill: #666"


def chart(figures: Mapping[str, float], budgets: tuple[Budget, ...] = BUDGETS) -> str:
    """Return an SVG with one row for each budget that was measured."""
    shown = [budget for budget in budgets if budget.figure in figures]
    width, height = _LABEL + _BAR + _RIGHT, _ROW * (len(shown) + 2)
    limit = _LABEL + _BAR * _FULL
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" style="{_STYLE}">',
        "<title>Share of each budget that is used</title>",
        f'<text x="{limit}" y="14" text-anchor="middle">limit</text>',
        *(line for n, budget in enumerate(shown, 1) for line in _row(budget, figures, _ROW * n)),
        f'<path d="M{limit} {_ROW}V{height - _ROW}" stroke="#666" stroke-dasharray="3 3"/>',
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _row(budget: Budget, figures: Mapping[str, float], y: int) -> list[str]:
    used = budget.used(figures)
    length = min(1.0, used * _FULL) * _BAR
    color = _KEPT if budget.kept(figures) else _MISSED
    sign = "≤" if budget.at_most else "≥"
    value = f"{figures[budget.figure]:,.3g} {sign} {budget.limit:g}"
    return [
        f'<text x="{_LABEL - 8}" y="{y + 14}" text-anchor="end">{escape(budget.what)}</text>',
        f'<rect x="{_LABEL}" y="{y + 4}" width="{_BAR}" height="12" fill="{_RAIL}"/>',
        f'<rect x="{_LABEL}" y="{y + 4}" width="{length:.1f}" height="12" fill="{color}"/>',
        f'<text x="{_LABEL + _BAR + 8}" y="{y + 14}">{escape(value)}</text>',
    ]
