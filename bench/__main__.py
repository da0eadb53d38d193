"""`make bench`: every budget in one table, the figures as JSON in bench/results.json. Exits 1 if one is missed."""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import actors, approvals, chats, daemon, processes, proxy, resets, sandbox, sessions, storage, turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    what: str
    figure: str
    limit: float
    at_most: bool = True

    def kept(self, figures: dict[str, float]) -> bool | None:
        """None: it could not be measured on this machine."""
        value = figures.get(self.figure)
        if value is None:
            return None
        return value <= self.limit if self.at_most else value >= self.limit


BUDGETS = (
    Budget(what="bytes per live session, before its transcript", figure="sessions.bytes_per_session", limit=4096),
    Budget(what="tells to sessions, times ThreadingActor's", figure="sessions_to_threads", limit=100, at_most=False),
    Budget(what="10,000 sessions stopped, s", figure="sessions.stop_10k_s", limit=1.0),
    Budget(what="ready after exec with 100,000 sessions, s", figure="daemon.ready_100k_s", limit=0.5),
    Budget(what="the same, to an empty store's", figure="daemon.ready_100k_to_empty", limit=1.1),
    Budget(what="the same with 1,000 open turns, s", figure="daemon.ready_1k_pending_s", limit=1.0),
    Budget(what="idle RSS, MB", figure="daemon.idle_rss_mb", limit=70),
    Budget(what="CPU of a turn at message 2,000, to one at 20", figure="turns.late_to_early", limit=1.5),
    Budget(what="1,000 live process actors, % of a core", figure="processes.core_percent", limit=10),
    Budget(what="a look for due resets, 100,000 sessions, ms", figure="resets.look_none_due_ms", limit=5),
    Budget(what="500 chats on Telegram: added on the way in, ms", figure="chats.telegram_in_p50_ms", limit=20),
    Budget(what="the same, on the way out", figure="chats.telegram_out_p50_ms", limit=20),
    Budget(what="the same, limits broken and loop stalls", figure="chats.telegram_breaches", limit=0),
    Budget(what="the same, KB of memory a chat", figure="chats.telegram_kb_per_chat", limit=200),
    Budget(what="the same, MB more after a second round", figure="chats.telegram_second_round_mb", limit=20),
    Budget(what="500 chats on Slack: added on the way in, ms", figure="chats.slack_in_p50_ms", limit=20),
    Budget(what="the same, on the way out", figure="chats.slack_out_p50_ms", limit=20),
    Budget(what="the same, acknowledged at p99", figure="chats.slack_ack_p99_ms", limit=250),
    Budget(what="the same, limits broken and loop stalls", figure="chats.slack_breaches", limit=0),
    Budget(what="the same, KB of memory a chat", figure="chats.slack_kb_per_chat", limit=200),
    Budget(what="the same, MB more after a second round", figure="chats.slack_second_round_mb", limit=20),
    Budget(what="sandbox proxy: CPU per MB, to both ends' own", figure="proxy.cpu_to_direct", limit=3),
    Budget(what="sandbox: ms over a plain command (p50)", figure="sandbox.over_plain_ms", limit=15),
    Budget(what="deciding about the slowest everyday command, ms", figure="approvals.everyday_max_ms", limit=5),
    Budget(what="deciding about 100,000 characters, ms", figure="approvals.huge_max_ms", limit=200),
    Budget(what="durable appends, times one commit each", figure="storage.ratio", limit=20, at_most=False),
)
PARTS = {
    "actors": actors.run,
    "sessions": sessions.run,
    "storage": storage.run,
    "daemon": daemon.run,
    "turns": turns.run,
    "processes": processes.run,
    "resets": resets.run,
    "chats": chats.run,
    "proxy": proxy.run,
    "sandbox": sandbox.run,
    "approvals": approvals.run,
}


def main() -> int:
    console = Console()
    figures: dict[str, float] = {}
    for name, measure in PARTS.items():
        with console.status(f"measuring {name}"):
            figures |= {f"{name}.{figure}": value for figure, value in measure().items()}
    figures["sessions_to_threads"] = figures["sessions.tells_per_s"] / figures["actors.threading_tells_per_s"]
    machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "system": platform.platform(terse=True)}
    Path(__file__).with_name("results.json").write_text(json.dumps({"machine": machine, **figures}, indent=2) + "\n")
    _show(console, figures)
    return 1 if any(budget.kept(figures) is False for budget in BUDGETS) else 0


def _show(console: Console, figures: dict[str, float]) -> None:
    table = Table("budget", "measured", "limit", "")
    for budget in BUDGETS:
        sign, kept = "<=" if budget.at_most else ">=", budget.kept(figures)
        verdict = {True: "[green]kept[/]", False: "[red]missed[/]", None: "[yellow]not measured[/]"}[kept]
        measured = "" if kept is None else f"{figures[budget.figure]:,.3g}"
        table.add_row(budget.what, measured, f"{sign} {budget.limit:g}", verdict)
    console.print(table)
    others = Table("figure", "measured")
    for name, value in figures.items():
        others.add_row(name, f"{value:,.4g}")
    console.print(others)


if __name__ == "__main__":
    sys.exit(main())
