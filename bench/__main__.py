"""`make bench`: print budgets and figures, write bench/results.json, chart and page; exit 1 if a budget is exceeded.

With names of parts it runs only these, and writes neither chart nor page.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import sys
import time
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.budgets import BUDGETS
from bench.chart import chart
from bench.page import budget_table, figure_table, put

PARTS = (
    "turns", "load", "crowd", "history", "memory", "daemon", "startup", "soak", "actors", "sessions", "storage",
    "resets", "jobs", "processes", "proxy", "sandbox", "approvals", "clients", "chats", "terminal",
    "learning",
)  # fmt: skip
_RESULTS = Path(__file__).with_name("results.json")
_WHEN = "{at}, {cpus} cores, load {load_before} before and up to {load_highest} meanwhile, Python {python}, {system}."
_CHART = Path(__file__).with_name("budgets.svg")


def main(chosen: list[str]) -> int:
    if unknown := set(chosen) - set(PARTS):
        print(f"unknown part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    console = Console()
    loads = [os.getloadavg()[0]]
    figures, failed = _measure(tuple(chosen) or PARTS, console, loads)
    if {"sessions.tells_per_s", "actors.threading_tells_per_s"} <= figures.keys():
        figures["sessions_to_threads"] = figures["sessions.tells_per_s"] / figures["actors.threading_tells_per_s"]
    machine = {
        "at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "load_before": round(loads[0], 1),  # after the start, the bench itself adds to it
        "load_highest": round(max(loads), 1),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.platform(terse=True),
    }
    _RESULTS.write_text(json.dumps({"machine": machine, **figures}, indent=2) + "\n")
    if not chosen and not failed:
        put("budgets", budget_table(figures, _WHEN.format(**machine)))
        put("figures", figure_table(figures))
        _CHART.write_text(chart(figures), encoding="utf-8")
    _show(console, figures)
    return 1 if failed or any(budget.kept(figures) is False for budget in BUDGETS) else 0


def _measure(parts: tuple[str, ...], console: Console, loads: list[float]) -> tuple[dict[str, float], bool]:
    """Return the figures, and whether a part failed."""
    figures: dict[str, float] = {}
    failed = False
    for number, name in enumerate(parts, 1):
        began = time.monotonic()
        console.print(f"[{number}/{len(parts)}] {name} ...", markup=False, end=" ")
        try:
            measured: dict[str, float] = import_module(f"bench.{name}").run()
        except Exception:  # noqa: BLE001 - the other parts still count
            console.print_exception()
            failed = True
            continue
        console.print(f"{time.monotonic() - began:.0f} s", highlight=False)
        loads.append(os.getloadavg()[0])
        figures |= {f"{name}.{figure}": value for figure, value in measured.items()}
    return figures, failed


def _show(console: Console, figures: dict[str, float]) -> None:
    table = Table("budget", "measured", "limit", "")
    for budget in BUDGETS:
        if (kept := budget.kept(figures)) is not None:
            sign, verdict = "<=" if budget.at_most else ">=", "[green]kept[/]" if kept else "[red]missed[/]"
            table.add_row(budget.what, f"{figures[budget.figure]:,.3g}", f"{sign} {budget.limit:g}", verdict)
    console.print(table)
    others = Table("figure", "measured")
    for name, value in figures.items():
        others.add_row(name, f"{value:,.4g}")
    console.print(others)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
