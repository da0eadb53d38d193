"""Streamed response: OpenAI's numbered `response.*` events in order.

Items follow the journal. Text is sent before its record, piece by piece, and completed when the record comes. If a
model call broke off and was repeated with other text, the deltas say so and then contain the whole text; the text in
`response.output_text.done` is the one that counts. Client libraries have closed lists of events, so `hermes.*` events
are sent only to a client that asked for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.openai_api.responses.response_items import OutputItems, message_item, text_part
from hermes.adapters.openai_api.responses.response_object import Answering
from hermes.adapters.openai_api.turns import turn_event
from hermes.adapters.openai_api.turns.stream_cursor import StreamCursor
from hermes.adapters.openai_api.turns.turn_event import Named
from hermes.adapters.openai_api.turns.turn_follower import TurnUpdate
from hermes.adapters.openai_api.turns.turn_view import calls_of, said
from hermes.domain.events import CallAsked, CallProgress, Notice, Steered, TextReset, TurnGaveUp
from hermes.domain.read.views import TurnRecord
from hermes.domain.records import ModelReplied, ToolFinished, TurnFailed, TurnFinished
from hermes.domain.values import replace

_TEXT_DELTA = "response.output_text.delta"


class ResponseEvents:
    """Events of one stream. `own_events`: the client asked for `hermes.*` events."""

    def __init__(self, answering: Answering, *, own_events: bool = False) -> None:
        self.over = False
        self._answering = answering
        self._own_events = own_events
        self._records: list[TurnRecord] = []
        self._output = OutputItems(answering.id)
        self._number = -1
        self._spoken: StreamCursor | None = None  # of the open message

    def begin(self, records: list[TurnRecord]) -> Iterator[JsonObject]:
        response = {**self._answering.object(records), "status": "in_progress", "output": []}
        yield self._event("response.created", response=response)
        yield self._event("response.in_progress", response=response)

    def of_update(self, update: TurnUpdate) -> Iterator[JsonObject]:
        match update:
            case str():
                yield from self._text(update)
            case TextReset():
                if self._spoken is not None:
                    self._spoken.again()
            case CallProgress() | Notice() | Steered():
                yield from self._ours(turn_event.of_event(update))
            case TurnGaveUp():
                yield from self._end("failed", gave_up=update)
            case TurnRecord():
                self._records.append(update)
                self._answering = replace(self._answering, session=update.session)
                yield from self._record(update)

    def of_question(self, asked: CallAsked) -> Iterator[JsonObject]:
        """End the stream with an open question, which the next message of the session answers."""
        for place, call in self._output.end_calls():
            yield from self._result(place, call)
        item = self._answering.question(asked)
        text = item["content"][0]["text"]
        yield from self._open_message(item["id"])
        yield self._in_message(item["id"], _TEXT_DELTA, delta=text, logprobs=[])
        yield from self._close_message(item)
        yield from self._end("completed", asked=asked)

    def _record(self, update: TurnRecord) -> Iterator[JsonObject]:
        match update.record:
            case ModelReplied(message=message) | TurnFinished(message=message):
                text, calls = said(message)
                yield from self._reply(text)
                for_client = isinstance(update.record, TurnFinished)
                for place, item in self._output.add_calls(calls, for_client=for_client):
                    yield from self._client_call(place, item) if for_client else self._call(place, item)
            case ToolFinished() as finished:
                if (done := self._output.finish_call(finished)) is not None:
                    yield from self._result(*done)
            case _:
                pass
        match update.record:
            case TurnFinished() as end:
                cut = end.finish_reason in ("length", "content_filter")
                yield from self._end("incomplete" if cut else "completed")
            case TurnFailed():
                yield from self._end("failed")
            case record:
                if (named := turn_event.of_record(record, update.session, calls_of(self._records))) is not None:
                    yield from self._ours(named)

    # ------------------------------------------------------------ text

    def _text(self, text: str) -> Iterator[JsonObject]:
        name = self._output.message_id()
        if self._spoken is None:
            self._spoken = StreamCursor()
            yield from self._open_message(name)
        if new := self._spoken.hear(text):
            yield self._in_message(name, _TEXT_DELTA, delta=new, logprobs=[])

    def _reply(self, text: str) -> Iterator[JsonObject]:
        """Complete the message of a stored text: send what is left and close it."""
        name = self._output.message_id()
        if text or self._spoken is not None:
            if self._spoken is None:
                self._spoken = StreamCursor()
                yield from self._open_message(name)
            if rest := self._spoken.rest(text):
                yield self._in_message(name, _TEXT_DELTA, delta=rest, logprobs=[])
            yield from self._close_message(message_item(name, text))
            self._output.add_message(text)
        self._spoken = None

    def _open_message(self, name: str) -> Iterator[JsonObject]:
        item = {**message_item(name, ""), "status": "in_progress", "content": []}
        yield self._at(self._output.place, "response.output_item.added", item=item)
        yield self._in_message(name, "response.content_part.added", part=text_part(""))

    def _close_message(self, item: JsonObject) -> Iterator[JsonObject]:
        name, part = item["id"], item["content"][0]
        yield self._in_message(name, "response.output_text.done", text=part["text"], logprobs=[])
        yield self._in_message(name, "response.content_part.done", part=part)
        yield self._at(self._output.place, "response.output_item.done", item=item)

    def _in_message(self, name: str, kind: str, **fields: Any) -> JsonObject:
        return self._at(self._output.place, kind, item_id=name, content_index=0, **fields)

    # ------------------------------------------------------------ calls

    def _call(self, place: int, item: JsonObject) -> Iterator[JsonObject]:
        name, arguments = item["id"], item["arguments"]
        yield self._at(place, "response.output_item.added", item={**item, "arguments": ""})
        yield self._at(place, "response.mcp_call.in_progress", item_id=name)
        yield self._at(place, "response.mcp_call_arguments.delta", item_id=name, delta=arguments)
        yield self._at(place, "response.mcp_call_arguments.done", item_id=name, arguments=arguments)

    def _client_call(self, place: int, item: JsonObject) -> Iterator[JsonObject]:
        name, arguments = item["id"], item["arguments"]
        yield self._at(place, "response.output_item.added", item={**item, "arguments": "", "status": "in_progress"})
        yield self._at(place, "response.function_call_arguments.delta", item_id=name, delta=arguments)
        yield self._at(
            place,
            "response.function_call_arguments.done",
            item_id=name,
            name=item["name"],
            arguments=arguments,
        )
        yield self._at(place, "response.output_item.done", item=item)

    def _result(self, place: int, item: JsonObject) -> Iterator[JsonObject]:
        if (how := item["status"]) in ("completed", "failed"):
            yield self._at(place, f"response.mcp_call.{how}", item_id=item["id"])
        yield self._at(place, "response.output_item.done", item=item)

    # ------------------------------------------------------------ end

    def _end(
        self, how: str, *, gave_up: TurnGaveUp | None = None, asked: CallAsked | None = None
    ) -> Iterator[JsonObject]:
        self.over = True
        for place, item in self._output.end_calls():
            yield from self._result(place, item)
        response = self._answering.object(self._records, gave_up=gave_up, asked=asked)
        yield self._event(f"response.{how}", response=response)

    def _ours(self, named: Named) -> Iterator[JsonObject]:
        name, fields = named
        if self._own_events:
            yield {"type": f"hermes.{name}", "sequence_number": self._number, **fields}

    def _at(self, place: int, kind: str, **fields: Any) -> JsonObject:
        return self._event(kind, output_index=place, **fields)

    def _event(self, kind: str, **fields: Any) -> JsonObject:
        """Number an event. Text counts by its characters, so that a later stream has the same numbers."""
        self._number += len(fields["delta"]) if kind == _TEXT_DELTA else 1
        return {"type": kind, "sequence_number": self._number, **fields}
