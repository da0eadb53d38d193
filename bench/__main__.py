"""`make bench`: print all budgets in a table, write bench/results.json, and exit 1 if a budget is exceeded."""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import (
    actors,
    approvals,
    chats,
    clients,
    daemon,
    load,
    processes,
    proxy,
    resets,
    sandbox,
    sessions,
    startup,
    storage,
    turns,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    what: str
    figure: str
    limit: float
    at_most: bool = True

    def kept(self, figures: dict[str, float]) -> bool | None:
        """Return whether the budget is kept; None if it could not be measured on this machine."""
        value = figures.get(self.figure)
        if value is None:
            return None
        return value <= self.limit if self.at_most else value >= self.limit


BUDGETS = (
    Budget(what="memory per live session without transcript, bytes", figure="sessions.bytes_per_session", limit=4096),
    Budget(
        what="tell throughput of sessions / ThreadingActor", figure="sessions_to_threads", limit=100, at_most=False
    ),
    Budget(what="time to stop 10,000 sessions, s", figure="sessions.stop_10k_s", limit=1.0),
    Budget(what="startup with 100,000 sessions, s", figure="daemon.ready_100k_s", limit=0.5),
    Budget(what="startup with 100,000 sessions / empty store", figure="daemon.ready_100k_to_empty", limit=1.1),
    Budget(what="startup with 1,000 open turns, s", figure="daemon.ready_1k_pending_s", limit=1.0),
    Budget(what="hermes --version / python -c pass", figure="startup.version_to_python", limit=4),
    Budget(what="hermes ps / python -c pass", figure="startup.ps_to_python", limit=10),
    Budget(what="idle RSS, MB", figure="daemon.idle_rss_mb", limit=70),
    Budget(what="CPU per turn at message 2,000 / at message 20", figure="turns.late_to_early", limit=1.5),
    Budget(what="1,000 live process actors, % of a core", figure="processes.core_percent", limit=10),
    Budget(what="check for due resets, 100,000 sessions, ms", figure="resets.look_none_due_ms", limit=5),
    Budget(what="Telegram, 500 chats: added inbound latency p50, ms", figure="chats.telegram_in_p50_ms", limit=20),
    Budget(what="Telegram, 500 chats: added outbound latency p50, ms", figure="chats.telegram_out_p50_ms", limit=20),
    Budget(what="Telegram, 500 chats: exceeded limits and loop stalls", figure="chats.telegram_breaches", limit=0),
    Budget(what="Telegram, 500 chats: memory per chat, KB", figure="chats.telegram_kb_per_chat", limit=200),
    Budget(
        what="Telegram, 500 chats: memory growth in round 2, MB", figure="chats.telegram_second_round_mb", limit=20
    ),
    Budget(what="Slack, 500 chats: added inbound latency p50, ms", figure="chats.slack_in_p50_ms", limit=20),
    Budget(what="Slack, 500 chats: added outbound latency p50, ms", figure="chats.slack_out_p50_ms", limit=20),
    Budget(what="Slack, 500 chats: acknowledgement p99, ms", figure="chats.slack_ack_p99_ms", limit=250),
    Budget(what="Slack, 500 chats: exceeded limits and loop stalls", figure="chats.slack_breaches", limit=0),
    Budget(what="Slack, 500 chats: memory per chat, KB", figure="chats.slack_kb_per_chat", limit=200),
    Budget(what="Slack, 500 chats: memory growth in round 2, MB", figure="chats.slack_second_round_mb", limit=20),
    Budget(what="sandbox proxy: CPU per MB / CPU of both ends", figure="proxy.cpu_to_direct", limit=3),
    Budget(what="sandbox: added time per command p50, ms", figure="sandbox.over_plain_ms", limit=15),
    Budget(what="approval policy: slowest everyday command, ms", figure="approvals.everyday_max_ms", limit=5),
    Budget(what="approval policy: 100,000 characters, ms", figure="approvals.huge_max_ms", limit=200),
    Budget(what="500 concurrent openai clients: answered", figure="clients.answered", limit=500, at_most=False),
    Budget(what="durable appends, group commit / single commits", figure="storage.ratio", limit=20, at_most=False),
)
PARTS = {
    "actors": actors.run,
    "sessions": sessions.run,
    "storage": storage.run,
    "daemon": daemon.run,
    "startup": startup.run,
    "turns": turns.run,
    "load": load.run,
    "processes": processes.run,
    "resets": resets.run,
    "chats": chats.run,
    "proxy": proxy.run,
    "sandbox": sandbox.run,
    "approvals": approvals.run,
    "clients": clients.run,
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
