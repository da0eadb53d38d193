"""Streamed response: OpenAI's numbered `response.*` events in order, with our own events between them.

Items follow the journal. Text is sent before its record, piece by piece, and completed when the record comes. If a
model call broke off and was repeated with other text, the deltas say so and then contain the whole text; the text in
`response.output_text.done` is the one that counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.openai_api.responses.response_object import (
    Answering,
    CallItems,
    message_id,
    message_item,
    text_part,
)
from hermes.adapters.openai_api.turns import turn_event
from hermes.adapters.openai_api.turns.stream_cursor import StreamCursor
from hermes.adapters.openai_api.turns.turn_event import Named
from hermes.adapters.openai_api.turns.turn_follower import TurnUpdate
from hermes.adapters.openai_api.turns.turn_view import calls_of, said
from hermes.domain.events import CallProgress, Notice, Steered, TextReset, TurnGaveUp
from hermes.domain.read.views import TurnRecord
from hermes.domain.records import ModelReplied, ToolFinished, TurnFailed, TurnFinished


class ResponseEvents:
    def __init__(self, answering: Answering) -> None:
        self.over = False
        self._answering = answering
        self._records: list[TurnRecord] = []
        self._calls = CallItems()
        self._number = 0
        self._items = 0
        self._replies = 0
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
                yield self._ours(turn_event.of_event(update))
            case TurnGaveUp():
                yield self._end("failed", update)
            case TurnRecord():
                self._records.append(update)
                self._answering = replace(self._answering, session=update.session)
                yield from self._record(update)

    def _record(self, update: TurnRecord) -> Iterator[JsonObject]:
        match update.record:
            case ModelReplied(message=message) | TurnFinished(message=message):
                text, calls = said(message)
                yield from self._reply(text)
                for item in self._calls.asked(calls, self._replies):
                    yield from self._call(item)
                self._replies += 1
            case ToolFinished() as finished:
                yield from self._item(self._calls.result(finished))
            case _:
                pass
        match update.record:
            case TurnFinished() as end:
                cut = end.finish_reason in ("length", "content_filter")
                yield self._end("incomplete" if cut else "completed")
            case TurnFailed():
                yield self._end("failed")
            case record:
                if (named := turn_event.of_record(record, update.session, calls_of(self._records))) is not None:
                    yield self._ours(named)

    # ------------------------------------------------------------ text

    def _text(self, text: str) -> Iterator[JsonObject]:
        if self._spoken is None:
            self._spoken = StreamCursor()
            yield from self._open_message()
        if new := self._spoken.hear(text):
            yield self._in_message("response.output_text.delta", delta=new, logprobs=[])

    def _reply(self, text: str) -> Iterator[JsonObject]:
        """Complete the message of a stored text: send what is left and close it."""
        if text or self._spoken is not None:
            if self._spoken is None:
                self._spoken = StreamCursor()
                yield from self._open_message()
            if rest := self._spoken.rest(text):
                yield self._in_message("response.output_text.delta", delta=rest, logprobs=[])
            yield self._in_message("response.output_text.done", text=text, logprobs=[])
            yield self._in_message("response.content_part.done", part=text_part(text))
            yield self._at("response.output_item.done", item=message_item(self._message(), text))
            self._items += 1
        self._spoken = None

    def _open_message(self) -> Iterator[JsonObject]:
        item = {**message_item(self._message(), ""), "status": "in_progress", "content": []}
        yield self._at("response.output_item.added", item=item)
        yield self._in_message("response.content_part.added", part=text_part(""))

    def _message(self) -> str:
        return message_id(self._answering.turn, self._replies)

    def _in_message(self, kind: str, **fields: Any) -> JsonObject:
        return self._at(kind, item_id=self._message(), content_index=0, **fields)

    # ------------------------------------------------------------ items

    def _call(self, item: JsonObject) -> Iterator[JsonObject]:
        named = {"item_id": item["id"]}
        yield self._at("response.output_item.added", item={**item, "arguments": "", "status": "in_progress"})
        yield self._at("response.function_call_arguments.delta", delta=item["arguments"], **named)
        yield self._at(
            "response.function_call_arguments.done", arguments=item["arguments"], name=item["name"], **named
        )
        yield self._at("response.output_item.done", item=item)
        self._items += 1

    def _item(self, item: JsonObject) -> Iterator[JsonObject]:
        yield self._at("response.output_item.added", item=item)
        yield self._at("response.output_item.done", item=item)
        self._items += 1

    def _end(self, how: str, gave_up: TurnGaveUp | None = None) -> JsonObject:
        self.over = True
        return self._event(f"response.{how}", response=self._answering.object(self._records, gave_up=gave_up))

    def _ours(self, named: Named) -> JsonObject:
        name, fields = named
        return self._event(f"hermes.{name}", **fields)

    def _at(self, kind: str, **fields: Any) -> JsonObject:
        return self._event(kind, output_index=self._items, **fields)

    def _event(self, kind: str, **fields: Any) -> JsonObject:
        number, self._number = self._number, self._number + 1
        return {"type": kind, "sequence_number": number, **fields}
