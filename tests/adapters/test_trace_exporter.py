"""Traces over OTLP/HTTP: spans of a turn with GenAI attributes, received by a collector of the test."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra `otel` is not installed")

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)

from hermes.adapters.otel.trace_exporter import TraceExporter, open_sink
from hermes.domain.events import CallBegan, CallEnded, Event, TextDelta, TurnAnswered, TurnBegan, TurnGaveUp
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.turn.tool_call import CallOutcome
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.turn.usage import Usage
from hermes.services.event_hub import EventHub
from tests.support.free_port import free_port
from tests.support.waiting import until

S, T = SessionId("s1"), TurnId("t1")
SECRET = "my password is swordfish"


class Collector(ThreadingHTTPServer):
    """OTLP collector: keeps the spans it gets."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[bytes] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def spans(self) -> list[Any]:
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        scopes = (scope for request in requests for each in request.resource_spans for scope in each.scope_spans)
        return [span for scope in scopes for span in scope.spans]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        import gzip

        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@contextmanager
def collecting() -> Iterator[Collector]:
    with Collector() as collector:
        thread = threading.Thread(target=collector.serve_forever, daemon=True)
        thread.start()
        yield collector
        collector.shutdown()
        thread.join()


class Ticks:
    """Clock that advances a second with each look."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@asynccontextmanager
async def exporting(address: str) -> AsyncIterator[EventHub]:
    hub = EventHub()
    task = asyncio.create_task(TraceExporter(hub, Ticks(), partial(open_sink, address)).run())
    await until(lambda: hub.watchers == 1)
    yield hub
    await until(lambda: not any(feed._events for feeds in hub._feeds.values() for feed in feeds))
    task.cancel()
    await asyncio.wait([task])


TURN: tuple[Event, ...] = (
    TurnBegan(session=S, turn=T, attempt=1),
    CallBegan(session=S, turn=T, call="c1", name="terminal", summary=SECRET),
    CallEnded(session=S, turn=T, call="c1", name="terminal", outcome=CallOutcome.ERROR, took_s=1.0),
    TextDelta(session=S, turn=T, text=SECRET),
    TurnAnswered(
        session=S,
        turn=T,
        text=SECRET,
        model="tiny-1",
        finish_reason="stop",
        usage=Usage(prompt_tokens=7, completion_tokens=3, cost_usd=0.5),
    ),
)


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


async def test_turn_model_calls_and_tool_calls_arrive_as_one_trace_without_content() -> None:
    with collecting() as collector:
        async with exporting(collector.address) as hub:
            for event in TURN:
                hub.publish(event)
        spans = {span.name: span for span in collector.spans() if span.name != "chat tiny-1"}
        chats = [span for span in collector.spans() if span.name == "chat tiny-1"]
        turn, tool = spans["invoke_agent hermes"], spans["execute_tool terminal"]
        assert {span.trace_id for span in (*chats, tool)} == {turn.trace_id}
        assert {span.parent_span_id for span in (*chats, tool)} == {turn.span_id}
        assert len(chats) == 2
        assert [attributes(chat)["gen_ai.operation.name"] for chat in chats] == ["chat", "chat"]
        known = attributes(turn)
        assert known["gen_ai.conversation.id"] == "s1"
        assert (known["gen_ai.usage.input_tokens"], known["gen_ai.usage.output_tokens"]) == (7, 3)
        assert (known["gen_ai.response.model"], known["hermes.cost_usd"]) == ("tiny-1", 0.5)
        assert attributes(tool)["error.type"] == "error"
        assert tool.end_time_unix_nano - tool.start_time_unix_nano == 1_000_000_000
        assert turn.end_time_unix_nano - turn.start_time_unix_nano == 4_000_000_000
        assert b"swordfish" not in b"".join(collector.bodies)


async def test_turn_that_fails_is_an_error() -> None:
    with collecting() as collector:
        async with exporting(collector.address) as hub:
            hub.publish(TURN[0])
            failure = Failure(kind=FailureKind.TIMEOUT, message=SECRET)
            hub.publish(TurnGaveUp(session=S, turn=T, failure=failure))
        spans = collector.spans()
        assert {span.status.code for span in spans} == {2}
        assert {attributes(span)["error.type"] for span in spans} == {"timeout"}
        assert b"swordfish" not in b"".join(collector.bodies)


async def test_collector_that_is_away_does_not_hold_up_the_stop() -> None:
    async with exporting(f"http://127.0.0.1:{free_port()}") as hub:
        for event in TURN:
            hub.publish(event)
        began = time.monotonic()
    assert time.monotonic() - began < 30  # two seconds for the export, and a machine that stalls
