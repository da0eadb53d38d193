"""Messages of a request, split into the client's instructions, the earlier history, and what is new. Pure.

What follows the last message of the model is new. The rest is history: the stored session has it, or it opens a new
session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hermes.adapters.http.field import encode
from hermes.domain.history.message_chain import INSTRUCTIVE, Chain, begin, extend
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.values import dataclass, replace

NO_INSTRUCTIONS = EncodedMessage(b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationInput:
    instructions: EncodedMessage  # one system message; empty if there is none
    history: tuple[Mapping[str, Any], ...]
    new: tuple[Mapping[str, Any], ...]
    encoded_history: tuple[EncodedMessage, ...]
    encoded_new: tuple[EncodedMessage, ...]

    @property
    def results(self) -> tuple[str, ...]:
        """Return the calls whose results are new."""
        return tuple(dict.fromkeys(message["tool_call_id"] for message in self.new if message["role"] == "tool"))

    @property
    def repeats_results(self) -> bool:
        """Return whether a call has more than one new result."""
        return len(self.results) < len([message for message in self.new if message["role"] == "tool"])

    def chains(self, scope: str) -> tuple[Chain, Chain]:
        """Return the chain of the history, and that of the whole conversation."""
        before = extend(begin(scope), self.history)
        return before, extend(before, self.new)

    def last_only(self) -> ConversationInput:
        """Return the input with one new message: a client that names a session may send others again."""
        if self.results or len(self.new) == 1:
            return self
        return replace(
            self,
            history=(*self.history, *self.new[:-1]),
            new=self.new[-1:],
            encoded_history=(*self.encoded_history, *self.encoded_new[:-1]),
            encoded_new=self.encoded_new[-1:],
        )


def split(messages: Sequence[Mapping[str, Any]], param: str) -> ConversationInput:
    encoded = [EncodedMessage(encode(message, f"{param}[{n}]")) for n, message in enumerate(messages)]
    said = [n for n, message in enumerate(messages) if message["role"] not in INSTRUCTIVE]
    first_new = next((at + 1 for at in reversed(range(len(said))) if messages[said[at]]["role"] == "assistant"), 0)
    old, new = said[:first_new], said[first_new:]
    return ConversationInput(
        instructions=_joined([message for message in messages if message["role"] in INSTRUCTIVE], param),
        history=tuple(messages[n] for n in old),
        new=tuple(messages[n] for n in new),
        encoded_history=tuple(encoded[n] for n in old),
        encoded_new=tuple(encoded[n] for n in new),
    )


def _joined(instructions: Sequence[Mapping[str, Any]], param: str) -> EncodedMessage:
    text = "\n\n".join(message["content"] for message in instructions if message["content"])
    return EncodedMessage(encode({"role": "system", "content": text}, param)) if text else NO_INSTRUCTIONS
