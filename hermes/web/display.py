"""Numbers and times as the pages show them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from hermes.config.schema import Value
from hermes.services.setting_service import shown

_UNITS = ("bytes", "KB", "MB", "GB", "TB")


def amount(number: float) -> str:
    return f"{number:,.0f}"


def size(number: float) -> str:
    unit = 0
    while number >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.0f} {_UNITS[unit]}" if unit == 0 or number >= 100 else f"{number:.1f} {_UNITS[unit]}"


def money(usd: float) -> str:
    return f"${usd:,.2f}" if usd >= 0.01 or not usd else f"${usd:.4f}"


def clock(at: float) -> str:
    """Return a time for people; the browser shows it in its own zone."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def span(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for unit_s, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit_s:
            return f"{seconds / unit_s:.1f} {unit}"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def setting_value(value: Value) -> str:
    return shown(value)
