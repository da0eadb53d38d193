"""Report of the context window as plain text and as a table. Pure."""

from __future__ import annotations

from hermes.domain.read.context_report import WORDS, ContextReport

_HEADINGS = ("Part", "Tokens", "Share")
_WIDTH = 28


def context_table(report: ContextReport) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """Return the text, and its rows with the headings first."""
    most = report.window or report.estimated or 1
    named = [
        (WORDS[each.part] + (f" ({each.items})" if each.items > 1 else ""), each.tokens) for each in report.parts
    ]
    named.append(("Together", report.estimated))
    if report.window:
        named.append(("Free", max(report.window - report.estimated, 0)))
    rows = [(name, f"{tokens:,}", f"{tokens * 100 / most:.1f}%") for name, tokens in named]
    window = f" of {report.window:,}" if report.window else ""
    counted = f", and the provider counted {report.counted:,} for the last request" if report.counted else ""
    head = f"About {report.estimated:,}{window} tokens are used{counted}."
    lines = [head, *(f"{name:<{_WIDTH}} {tokens:>10} {share:>7}" for name, tokens, share in rows)]
    return "\n".join(lines), (_HEADINGS, *rows)
