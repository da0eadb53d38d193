"""Exporter of traces: turns, model calls and tool calls as spans over OTLP/HTTP. Needs the extra `otel`.

It subscribes to live events, so that nothing of it runs while it is off. The SDK sends from a thread of its own and
drops spans that it cannot send. The spans contain ids, names of models and tools, times and figures, and no content.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from loguru import logger

from hermes import __version__
from hermes.domain.errors import ConfigError
from hermes.domain.read.turn_span import TurnSpan, TurnSpans, step_attributes, step_name, turn_attributes
from hermes.ports.given import Clock
from hermes.ports.hub import Hub, Subscription
from hermes.system.extra import install_line

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

PATH: Final = "/v1/traces"
_TIMEOUT_S: Final = 2  # of one export, with its retries: a shutdown waits for it
_NS: Final = 1_000_000_000


class SpanSink(Protocol):
    """Takes finished turns. Never waits for the network."""

    def add(self, span: TurnSpan) -> None: ...
    def close(self) -> None:
        """Send what is left. May block for a moment."""


class OtlpSink(SpanSink):
    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("hermes", __version__)

    def add(self, span: TurnSpan) -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context  # noqa: PLC0415

        turn = self._tracer.start_span(
            "invoke_agent hermes", start_time=int(span.began * _NS), attributes=dict(turn_attributes(span))
        )
        if span.problem:
            turn.set_status(Status(StatusCode.ERROR, span.problem))
        inside = set_span_in_context(turn)
        for step in span.steps:
            kind = SpanKind.CLIENT if step.kind.value == "model" else SpanKind.INTERNAL
            child = self._tracer.start_span(
                step_name(step, span),
                context=inside,
                kind=kind,
                start_time=int(step.began * _NS),
                attributes=dict(step_attributes(step, span)),
            )
            if step.problem:
                child.set_status(Status(StatusCode.ERROR, step.problem))
            child.end(int(step.ended * _NS))
        turn.end(int(span.ended * _NS))

    def close(self) -> None:
        self._provider.shutdown()


def open_sink(endpoint: str) -> OtlpSink:
    """Open the sink. Imports the SDK, so call it in a thread. Raises ConfigError if the extra is not installed."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(
            f"otel.enabled needs packages that are not installed. Install them with:\n  {install_line('otel')}"
        ) from error
    resource = Resource.create({"service.name": "hermes", "service.version": __version__})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}{PATH}", timeout=_TIMEOUT_S)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1000))
    return OtlpSink(provider)


class TraceExporter:
    def __init__(self, hub: Hub, clock: Clock, open_: Callable[[], SpanSink]) -> None:
        self._hub = hub
        self._clock = clock
        self._open = open_

    async def run(self) -> None:
        """Export until cancelled. Subscribes first: the import of the SDK takes a moment."""
        feed = self._hub.subscribe()
        try:
            sink = await asyncio.to_thread(self._open)
        except ConfigError as error:
            feed.close()
            logger.error("otel: {}", error)
            return
        logger.info("otel: exporting traces")
        try:
            while True:
                await self._follow(sink, feed)
                logger.warning("otel: events came faster than they were read; some turns are missing in the traces")
                feed = self._hub.subscribe()
        finally:
            feed.close()
            await asyncio.to_thread(sink.close)

    async def _follow(self, sink: SpanSink, feed: Subscription) -> None:
        """Export until the feed ends, because it lagged."""
        spans = TurnSpans()
        async for event in feed:
            if (ended := spans.note(event, self._clock())) is not None:
                sink.add(ended)
