"""Exporter of traces, made from the settings."""

from __future__ import annotations

from functools import partial

from hermes.adapters.otel.trace_exporter import TraceExporter, open_sink
from hermes.app.actor_system import ActorSystem
from hermes.config.settings import Config


def make_exporter(config: Config, system: ActorSystem) -> TraceExporter:
    return TraceExporter(system.ports.hub, system.ports.clock, partial(open_sink, config.otel.endpoint))
