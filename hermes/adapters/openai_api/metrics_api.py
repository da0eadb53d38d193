"""`GET /metrics`: figures of the daemon in the Prometheus text format. They contain no content of conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from aiohttp import web

from hermes.adapters.http.service import Service
from hermes.ports.metrics import DaemonFigures, Distribution

if TYPE_CHECKING:
    from prometheus_client import Metric

METRICS_PATH = "/metrics"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricsApi:
    def __init__(self, service: Service, *, connections: Callable[[], int]) -> None:
        self._service = service
        self._connections = connections

    def route(self) -> web.RouteDef:
        return web.get(METRICS_PATH, self.metrics)

    async def metrics(self, _request: web.Request) -> web.Response:
        figures = await self._service.operations.figures()
        # In a thread: the first call imports the package.
        text = await asyncio.to_thread(exposition, figures, self._connections())
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE})


def exposition(figures: DaemonFigures, connections: int) -> bytes:
    """Return the figures in the text format."""
    from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415 - only where it is scraped

    class _Figures:
        def collect(self) -> Iterator[Metric]:
            yield from _turns(figures)
            yield from _daemon(figures, connections)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures())
    return generate_latest(registry)


def _turns(figures: DaemonFigures) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily  # noqa: PLC0415

    turns = figures.turns
    ended = CounterMetricFamily("hermes_turns", "Ended turns by outcome", labels=["outcome"])
    for outcome, number in sorted(turns.ended.items()):
        ended.add_metric([outcome], number)
    yield ended
    yield _histogram(
        "hermes_turn_seconds", "From the acceptance of a message to the end of its turn", turns.latency_s
    )
    yield _histogram(
        "hermes_first_token_seconds", "From the acceptance of a message to the first text", turns.first_token_s
    )
    tokens = CounterMetricFamily("hermes_tokens", "Tokens by model and kind", labels=["model", "kind"])
    cost = CounterMetricFamily("hermes_cost_usd", "Cost in US dollars by model", labels=["model"])
    for model, used in sorted(turns.used.items()):
        tokens.add_metric([model, "prompt"], used.prompt_tokens)
        tokens.add_metric([model, "completion"], used.completion_tokens)
        tokens.add_metric([model, "cached"], used.cached_tokens)
        cost.add_metric([model], used.cost_usd)
    yield tokens
    yield cost


def _events(figures: DaemonFigures) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415

    hooks = CounterMetricFamily("hermes_hooks", "Hooks that ran, failed or were dropped", labels=["outcome"])
    for outcome, number in sorted(figures.events.hooks.items()):
        hooks.add_metric([outcome], number)
    yield hooks
    yield GaugeMetricFamily("hermes_hooks_waiting", "Events that wait for a hook", figures.events.hooks_waiting)
    webhooks = CounterMetricFamily("hermes_webhooks", "Events of webhooks", labels=["route", "outcome"])
    for (route, outcome), number in sorted(figures.events.webhooks.items()):
        webhooks.add_metric([route, outcome], number)
    yield webhooks


def _daemon(figures: DaemonFigures, connections: int) -> Iterator[Metric]:
    from prometheus_client.core import (  # noqa: PLC0415
        CounterMetricFamily,
        GaugeMetricFamily,
        InfoMetricFamily,
        SummaryMetricFamily,
    )

    yield InfoMetricFamily("hermes_build", "Version of the daemon", {"version": figures.version})
    gauges: tuple[tuple[str, str, float], ...] = (
        ("hermes_ready", "1 if the daemon takes work", figures.ready),
        ("hermes_uptime_seconds", "Time since the start", figures.uptime_s),
        ("hermes_memory_bytes", "Memory without shared pages", figures.memory_bytes),
        ("hermes_turns_running", "Turns in flight", figures.turns_running),
        ("hermes_sessions_stored", "Sessions in the store, with ended ones", figures.sessions_stored),
        ("hermes_sessions_live", "Sessions in memory", figures.sessions_live),
        ("hermes_sessions_waiting", "Sessions that wait for a person", figures.sessions_waiting),
        ("hermes_outbox_messages", "Messages that are not delivered yet", figures.outbox),
        ("hermes_dead_letters", "Messages that could not be processed or delivered", figures.dead_letters),
        ("hermes_journal_waiting", "Transactions that wait for a commit", figures.waiting_writes),
        ("hermes_store_bytes", "Size of the store on disk", figures.store_bytes),
        ("hermes_processes_running", "Background processes", figures.processes),
        ("hermes_child_sessions_working", "Child sessions that work", figures.children.working),
        ("hermes_child_sessions_waiting", "Child sessions that wait for others", figures.children.waiting),
        ("hermes_http_connections", "Open connections of the API", connections),
    )
    for name, about, value in gauges:
        yield GaugeMetricFamily(name, about, value)
    mailbox = GaugeMetricFamily("hermes_mailbox_messages", "Waiting messages by kind of actor", labels=["kind"])
    for kind, depth in sorted(figures.mailbox.items()):
        mailbox.add_metric([kind], depth)
    yield mailbox
    children = CounterMetricFamily("hermes_child_sessions", "Ended child sessions", labels=["purpose", "end"])
    for (purpose, end), number in sorted(figures.children.ended.items()):
        children.add_metric([purpose, end], number)
    yield children
    yield from _events(figures)
    learned = CounterMetricFamily(
        "hermes_learning_changes", "Changes of memory, skills and beliefs", labels=["kind", "by"]
    )
    for (kind, by), number in sorted(figures.learned.items()):
        learned.add_metric([kind, by], number)
    yield learned
    yield GaugeMetricFamily("hermes_jobs", "Scheduled jobs in the store", figures.jobs.stored)
    late = 0.0 if figures.jobs.next_due is None else max(figures.now - figures.jobs.next_due, 0.0)
    yield GaugeMetricFamily("hermes_job_delay_seconds", "Time since which a job is due and was not taken", late)
    runs = CounterMetricFamily("hermes_job_runs", "Ended runs of scheduled jobs", labels=["state"])
    for state, number in sorted(figures.jobs.ended.items()):
        runs.add_metric([state], number)
    yield runs
    yield _histogram("hermes_loop_lag_seconds", "Delay of a timer on the event loop", figures.loop_lag_s)
    yield CounterMetricFamily("hermes_transactions", "Stored transactions", figures.transactions)
    yield SummaryMetricFamily(
        "hermes_commit_seconds", "Commits, each with a sync", figures.commits, figures.commits_took_s
    )


def _histogram(name: str, about: str, values: Distribution) -> Metric:
    from prometheus_client.core import HistogramMetricFamily  # noqa: PLC0415

    bounds = [*map(str, values.bounds), "+Inf"]
    buckets = [(bound, float(number)) for bound, number in zip(bounds, accumulate(values.counts), strict=True)]
    return HistogramMetricFamily(name, about, buckets, values.total)
