"""Budgets of the bench: a limit for a figure, each in one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    what: str
    figure: str
    limit: float
    at_most: bool = True

    def kept(self, figures: Mapping[str, float]) -> bool | None:
        """Return whether the budget is kept; None if it was not measured."""
        value = figures.get(self.figure)
        if value is None:
            return None
        return value <= self.limit if self.at_most else value >= self.limit

    def used(self, figures: Mapping[str, float]) -> float:
        """Return how much of the budget is used: 1 is all of it, more than 1 is too much."""
        value = figures[self.figure]
        if not self.at_most:
            return self.limit / value if value > 0 else 100.0
        return max(0.0, value) / self.limit if self.limit else float(value > 0) * 100


def _at_most(figure: str, limit: float, what: str) -> Budget:
    return Budget(what=what, figure=figure, limit=limit)


def _at_least(figure: str, limit: float, what: str) -> Budget:
    return Budget(what=what, figure=figure, limit=limit, at_most=False)


BUDGETS = (
    # one turn
    _at_most("load.cpu_to_bare_at_64", 4, "plain turn at 64 sessions: CPU / bare aiohttp proxy"),
    _at_most("load.cpu_ms_at_1", 2, "plain turn at 1 session: CPU, ms"),
    _at_most("turns.plain_added_p50_ms", 3, "plain turn: added latency p50, ms"),
    _at_most("turns.first_token_added_ms", 5, "streamed turn: added time to the first token p50, ms"),
    _at_most("history.late_to_early_2k", 1.5, "CPU per turn at message 2,000 / at message 20"),
    _at_most("history.added_growth_ms", 3, "added latency at message 20,000 less at message 20, ms"),
    # many together
    _at_most("crowd.slow_1k_all_s", 3, "1,000 sessions on a 1 s model: all answered, s"),
    _at_least("crowd.streams_at_once", 500, "500 streams: running at the same time"),
    _at_most("crowd.streams_gap_ms", 250, "500 streams of 50 tokens/s: longest gap, ms"),
    _at_least("crowd.overload_goodput", 0.9, "five-fold overload: goodput / peak"),
    _at_most("crowd.overload_recovery_s", 5, "five-fold overload: recovery, s"),
    _at_least("clients.answered", 500, "500 concurrent openai clients: answered"),
    # memory, start and growth
    _at_most("daemon.idle_rss_mb", 50, "idle memory, MB"),
    _at_most("memory.awake_10k_mb", 300, "10,000 awake sessions of 20 messages: memory, MB"),
    _at_most("daemon.idle_rss_1m_more_mb", 10, "1,000,000 stored sessions: more memory after a start, MB"),
    _at_most("daemon.ready_1m_more_ms", 100, "1,000,000 stored sessions: more time of a start, ms"),
    _at_most("daemon.ready_100k_s", 0.5, "start with 100,000 sessions, s"),
    _at_most("daemon.ready_1k_pending_s", 1, "start with 1,000 open turns, s"),
    _at_most("startup.version_to_python", 4, "hermes --version: CPU / python -c pass"),
    _at_most("startup.ps_to_python", 10, "hermes ps: CPU / python -c pass"),
    _at_most("soak.memory_growth_mb", 5, "soak: memory growth, MB"),
    _at_most("soak.descriptor_growth", 5, "soak: growth of open files"),
    # actors and store
    _at_most("sessions.bytes_per_session", 4096, "live session without transcript, bytes"),
    _at_least("sessions_to_threads", 100, "tells to sessions / tells to ThreadingActor"),
    _at_most("sessions.stop_10k_s", 1, "stop of 10,000 sessions, s"),
    _at_least("storage.ratio", 20, "durable appends: group commit / single commits"),
    _at_most("storage.cpu_to_raw_lmdb", 10, "durable append: CPU / raw LMDB"),
    _at_most("resets.look_none_due_ms", 5, "check for due resets, 100,000 sessions, ms"),
    # scheduled jobs
    _at_most("jobs.ready_ratio", 1.1, "start with 100,000 jobs / without"),
    _at_most("jobs.idle_more_percent", 0.5, "100,000 jobs at rest, % of a core"),
    _at_most("jobs.due_1k_begun_s", 2, "1,000 jobs due in the same second: all begun, s"),
    # tools and processes
    _at_most("processes.core_percent", 10, "1,000 background processes, % of a core"),
    _at_most("proxy.cpu_to_direct", 3, "sandbox proxy: CPU per MB / CPU of both ends"),
    _at_most("sandbox.over_plain_ms", 15, "sandbox: added time per command p50, ms"),
    _at_most("approvals.everyday_max_ms", 5, "approval policy: slowest everyday command, ms"),
    _at_most("approvals.huge_max_ms", 200, "approval policy: 100,000 characters, ms"),
    # terminal interface
    _at_most("terminal.first_paint_ms", 500, "terminal: exec to first paint, best of 7, ms"),
    _at_most("terminal.echo_median_ms", 30, "terminal: key to echo at 50 tokens/s, median, ms"),
    # chat platforms
    _at_most("chats.telegram_in_p50_ms", 20, "Telegram, 500 chats: added inbound latency p50, ms"),
    _at_most("chats.telegram_out_p50_ms", 20, "Telegram, 500 chats: added outbound latency p50, ms"),
    _at_most("chats.telegram_breaches", 0, "Telegram, 500 chats: exceeded limits and loop stalls"),
    _at_most("chats.telegram_kb_per_chat", 200, "Telegram, 500 chats: memory per chat, KB"),
    _at_most("chats.telegram_second_round_mb", 20, "Telegram, 500 chats: memory growth in round 2, MB"),
    _at_most("chats.slack_in_p50_ms", 20, "Slack, 500 chats: added inbound latency p50, ms"),
    _at_most("chats.slack_out_p50_ms", 20, "Slack, 500 chats: added outbound latency p50, ms"),
    _at_most("chats.slack_ack_p99_ms", 250, "Slack, 500 chats: acknowledgement p99, ms"),
    _at_most("chats.slack_breaches", 0, "Slack, 500 chats: exceeded limits and loop stalls"),
    _at_most("chats.slack_kb_per_chat", 200, "Slack, 500 chats: memory per chat, KB"),
    _at_most("chats.slack_second_round_mb", 20, "Slack, 500 chats: memory growth in round 2, MB"),
)
