"""Chain of hashes over the messages of a client's history.

A client that sends its whole history is recognised by it: the chain of its messages up to the last answer leads to
the turn that gave this answer. Whitespace does not count, since clients trim text. Instructions do not count either:
many clients put the time into them. Messages of the model in a row count as one, and calls of the server's own tools,
which only some clients send back, as none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from itertools import groupby
from typing import Any, Final, NewType

from hermes.domain.ids import InboundKey
from hermes.domain.turn.message import EncodedMessage

Chain = NewType("Chain", bytes)

NO_CHAIN: Final = Chain(b"")
INSTRUCTIVE: Final = ("system", "developer")
SERVER_CALL: Final = "mcp_"  # ids of calls of the server's own tools, as clients of the Responses API know them
MAX_SAID: Final = 16_000  # characters of earlier text in a turn that are kept for its chain


def begin(scope: str) -> Chain:
    """Return the chain without messages. Histories of different scopes never match."""
    return Chain(blake2b(scope.encode(errors="replace"), digest_size=16, person=b"history").digest())


def extend(chain: Chain, messages: Iterable[Mapping[str, Any]]) -> Chain:
    counted = (message for message in messages if _counts(message))
    for from_model, group in groupby(counted, lambda message: message.get("role") == "assistant"):
        for message in [_merged(group)] if from_model else group:
            chain = _link(chain, _canonical(message))
    return chain


def _counts(message: Mapping[str, Any]) -> bool:
    if message.get("role") in INSTRUCTIVE:
        return False
    return not str(message.get("tool_call_id") or "").startswith(SERVER_CALL)


def _merged(messages: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    whole = list(messages)
    if len(whole) == 1:
        return whole[0]
    text = "\n\n".join(filter(None, (_words(message.get("content")) for message in whole)))
    calls = [call for message in whole for call in message.get("tool_calls") or ()]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def answered(chain: Chain, text: str, calls: Iterable[Mapping[str, Any]] = ()) -> Chain:
    """Return the chain of a history that ends with this answer."""
    return extend(chain, ({"role": "assistant", "content": text, "tool_calls": list(calls)},))


def key_of(chain: Chain) -> InboundKey:
    return InboundKey(f"history:{chain.hex()}")


def request_key(chain: Chain, content: bytes) -> InboundKey:
    """Return the key under which a repeat of a whole request is recognised."""
    return InboundKey(f"request:{_link(chain, content).hex()}")


def joined(said: str, text: str) -> str:
    """Return the text of a turn's answers so far as a client has read them in a stream."""
    return "\n\n".join(filter(None, (said, text)))


def text_and_calls(message: EncodedMessage) -> tuple[str, list[Mapping[str, Any]]]:
    """Return the text and the tool calls of a model's message."""
    fields = json.loads(message)
    content = fields.get("content")
    return content if isinstance(content, str) else "", list(fields.get("tool_calls") or ())


def _link(chain: Chain, content: bytes) -> Chain:
    return Chain(blake2b(chain + content, digest_size=16).digest())


def _canonical(message: Mapping[str, Any]) -> bytes:
    content = message.get("content")
    parts = [message.get("role", ""), _words(content)]
    if message.get("tool_call_id"):
        parts.append(message["tool_call_id"])
    calls = (call for call in message.get("tool_calls") or () if not call["id"].startswith(SERVER_CALL))
    parts += [f"{call['id']} {call['function']['name']}" for call in calls]
    return "\0".join(parts).encode(errors="replace")


def _words(content: object) -> str:
    if content is None:
        return ""
    text = content if isinstance(content, str) else json.dumps(content, sort_keys=True, ensure_ascii=False)
    return " ".join(text.split())
