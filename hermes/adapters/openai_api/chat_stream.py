"""Streamed chat completion: the text of a turn as it is written, and other events as named events.

Every event is a chunk, because client libraries parse each as one. Chunks without text add nothing to the answer.
"""

from __future__ import annotations

from hermes.adapters.http.event_stream import EventStream
from hermes.adapters.openai_api.completion import ChatCompletion
from hermes.adapters.openai_api.turns import turn_event
from hermes.adapters.openai_api.turns.turn_event import Shown
from hermes.adapters.openai_api.turns.turn_watch import TurnWatch
from hermes.domain.events import CallAsked, ReasoningDelta, SessionMoved, TurnAnswered, TurnGaveUp, TurnOutcome
from hermes.domain.values import replace


class ChatStream:
    """Stream of one turn. `waits`: it stays open while the turn waits for a person; else the question ends it."""

    def __init__(self, stream: EventStream, completion: ChatCompletion, watch: TurnWatch, *, waits: bool) -> None:
        self._stream = stream
        self._waits = waits
        self._completion = completion
        self._watch = watch

    async def until_the_end(self) -> TurnOutcome | CallAsked:
        await self._stream.send(self._completion.first_chunk())
        while True:
            match await self._watch.step():
                case None:
                    await self._stream.ping()
                case str() as text:
                    await self._stream.send(self._completion.text_chunk(text))
                case ReasoningDelta() as thought:
                    await self._stream.send(self._completion.reasoning_chunk(thought.text))
                case TurnAnswered() | TurnGaveUp() as outcome:
                    return outcome
                case SessionMoved() as moved:
                    self._completion = replace(self._completion, session=moved.successor)
                    await self._stream.send(self._completion.session_event(), event="hermes.session")
                case CallAsked() as asked:
                    await self._show(asked)
                    if not self._waits:
                        return asked
                case shown:
                    await self._show(shown)

    async def finish(self, answer: TurnAnswered, *, include_usage: bool) -> None:
        self._completion = completion = replace(self._completion, session=answer.session)
        if rest := self._watch.spoken.rest(answer.text):
            await self._stream.send(completion.text_chunk(rest))
        if answer.calls:
            await self._stream.send(completion.calls_chunk(answer.calls))
        await self._stream.send(completion.finish_chunk(answer))
        await self._stream.send(completion.session_event(), event="hermes.session")
        if include_usage:  # last: client libraries keep the usage of the last chunk
            await self._stream.send(completion.usage_chunk(answer))
        await self._stream.done()

    async def ask(self, asked: CallAsked) -> None:
        """End the stream with the question as text. The next message of the conversation answers it."""
        self._completion = completion = replace(self._completion, session=asked.session)
        await self._stream.send(completion.text_chunk(self._watch.spoken.rest(completion.question(asked))))
        await self._stream.send(completion.waiting_chunk(asked))
        await self._stream.send(completion.session_event(), event="hermes.session")
        await self._stream.done()

    async def _show(self, shown: Shown) -> None:
        name, fields = turn_event.of_event(shown)
        await self._stream.send(self._completion.event(fields), event=f"hermes.{name}")
