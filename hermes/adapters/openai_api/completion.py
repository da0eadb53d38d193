"""Answers in OpenAI's format. The field `hermes` is our extension: ids and notices."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.adapters.http.key_scope import may_approve
from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.openai_api.turns import pending
from hermes.domain.events import CallAsked, TurnAnswered
from hermes.domain.ids import SessionId
from hermes.domain.turn.submission import Receipt
from hermes.domain.turn.tool_call import ClientCall
from hermes.domain.turn.usage import Usage
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCompletion:
    receipt: Receipt
    session: SessionId  # current session of the conversation
    created: int
    model: str

    def whole(self, answer: TurnAnswered) -> JsonObject:
        whole = self._answer(answer.text, answer.finish_reason, answer.usage, answer.reasoning)
        if answer.calls:
            message = whole["choices"][0]["message"]
            message |= {"content": answer.text or None, "tool_calls": list(map(_call, answer.calls))}
        return whole

    def waiting(self, asked: CallAsked) -> JsonObject:
        """Build an answer with the open question, because the turn waits for a person."""
        answer = self._answer(self.question(asked), "stop", Usage())
        return {**answer, "hermes": {**self._hermes(), "pending": pending.field(asked)}}

    def question(self, asked: CallAsked) -> str:
        return pending.in_words(asked, self.receipt.into or self.receipt.turn, may_approve=may_approve())

    def waiting_chunk(self, asked: CallAsked) -> JsonObject:
        """Build the last chunk of a stream that ends with an open question."""
        return {**self._chunk({}, "stop"), "hermes": {**self._hermes(), "pending": pending.field(asked)}}

    def first_chunk(self) -> JsonObject:
        """Build the role chunk. It tells how the message was handled, for example queued."""
        chunk = self._chunk({"role": "assistant", "content": ""})
        return {**chunk, "hermes": {**self._ids(), "handling": self.receipt.handling}}

    def text_chunk(self, text: str) -> JsonObject:
        return self._chunk({"content": text})

    def reasoning_chunk(self, text: str) -> JsonObject:
        return self._chunk({"reasoning_content": text})

    def calls_chunk(self, calls: Sequence[ClientCall]) -> JsonObject:
        return self._chunk({"tool_calls": [{"index": n, **_call(call)} for n, call in enumerate(calls)]})

    def finish_chunk(self, answer: TurnAnswered) -> JsonObject:
        return {**self._chunk({}, answer.finish_reason), "hermes": self._hermes()}

    def usage_chunk(self, answer: TurnAnswered) -> JsonObject:
        head = self._head("chat.completion.chunk")
        return {**head, "choices": [], "usage": _usage(answer.usage), "hermes": self._hermes()}

    def session_event(self) -> JsonObject:
        return {**self._chunk({}), "hermes": self._hermes(), **self._ids()}

    def event(self, fields: JsonObject) -> JsonObject:
        """Build a chunk that adds nothing to the text, with its fields in `hermes`."""
        return {**self._chunk({}), "hermes": {**self._ids(), **fields}}

    def _answer(self, text: str, finish_reason: str, usage: Usage, reasoning: str = "") -> JsonObject:
        message: JsonObject = {"role": "assistant", "content": text, "refusal": None}
        if reasoning:
            message["reasoning_content"] = reasoning
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
        return {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": _usage(usage),
            "hermes": self._hermes(),
        }

    def _chunk(self, delta: JsonObject, finish_reason: str | None = None) -> JsonObject:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head("chat.completion.chunk"), "choices": [choice]}

    def _head(self, kind: str) -> JsonObject:
        return {"id": f"chatcmpl-{self.receipt.turn}", "object": kind, "created": self.created, "model": self.model}

    def _hermes(self) -> JsonObject:
        notice = {"notice": self.receipt.notice} if self.receipt.notice else {}
        return {**self._ids(), **notice}

    def _ids(self) -> JsonObject:
        named = {"session_id": self.session} if self.session else {}  # a command may have none
        return {**named, "turn_id": self.receipt.turn}


def _call(call: ClientCall) -> JsonObject:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _usage(usage: Usage) -> JsonObject:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        **({"prompt_tokens_details": {"cached_tokens": usage.cached_tokens}} if usage.cached_tokens else {}),
    }
