"""Bodies of POST /v1/responses and POST /v1/runs, and the turn that they ask for.

Values that a client gets back later (metadata, the previous response, the instructions) are stored with the turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from hermes.adapters.http.field import contradict, encode_free
from hermes.adapters.http.schema import Fields, FilledText, Metadata, SessionIdText, Text, decode, unknown_fields
from hermes.adapters.openai_api.responses.input_items import (
    InputItem,
    ItemReference,
    as_messages,
    with_types,
)
from hermes.adapters.openai_api.turns.conversation_input import ConversationInput, split
from hermes.adapters.openai_api.turns.session_choice import one_session
from hermes.adapters.openai_api.turns.tool_wish import read_tools
from hermes.adapters.openai_api.turns.turn_wish import (
    HINTS,
    MAX_MESSAGES,
    ConversationReference,
    Effort,
    HermesWish,
    JsonObjectFormat,
    TextFormat,
    Tokens,
    Unsupported,
    Verbosity,
    check_options,
    notices,
)
from hermes.domain.ids import SessionId
from hermes.domain.values import dataclass

EVENTS = "hermes.events"  # value of `include`
MAX_INSTRUCTIONS = 100_000


class JsonSchemaFormat(Fields, tag="json_schema", tag_field="type"):
    """JSON of a schema."""

    name: FilledText
    schema: dict[str, Any]
    description: Text | None = None
    strict: bool | None = None


class TextWish(Fields):
    format: TextFormat | JsonObjectFormat | JsonSchemaFormat | None = None
    verbosity: Verbosity | None = None


class ReasoningWish(Fields):
    """Reasoning of the model. A summary is never made."""

    effort: Effort | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None


class TurnFields(Fields):
    """Fields that responses and runs share."""

    input: FilledText | Annotated[list[InputItem], Meta(min_length=1, max_length=MAX_MESSAGES)]
    model: FilledText | None = None
    instructions: Annotated[Text, Meta(max_length=MAX_INSTRUCTIONS)] | None = None
    session_id: SessionIdText | None = None
    metadata: Metadata | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    max_output_tokens: Tokens | None = None
    reasoning: ReasoningWish | None = None
    text: TextWish | None = None
    user: Text | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    hermes: HermesWish | None = None


class RunRequest(TurnFields):
    """A run: a turn that is followed from outside."""

    previous_response_id: FilledText | None = None
    conversation: SessionIdText | ConversationReference | None = None


class ResponseRequest(TurnFields):
    """A turn in OpenAI's Responses format."""

    previous_response_id: FilledText | None = None
    conversation: SessionIdText | ConversationReference | None = None
    background: bool | None = None
    stream: bool | None = None
    store: bool | None = None
    include: list[Text] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    max_tool_calls: Unsupported = None
    prompt: Unsupported = None
    top_logprobs: Annotated[int, Meta(ge=0, le=0)] | None = None
    service_tier: Text | None = None
    prompt_cache_key: Text | None = None
    prompt_cache_retention: Text | None = None
    safety_identifier: Text | None = None
    stream_options: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """A checked request of a turn."""

    model: str
    given: ConversationInput
    options: bytes
    user: str
    session: SessionId | None
    notice: str


def read_response(body: Any) -> ResponseRequest:
    return decode(_prepared(body), ResponseRequest)


def read_run(body: Any) -> RunRequest:
    return decode(_prepared(body), RunRequest)


def _prepared(body: Any) -> Any:
    return {**body, "input": with_types(body["input"])} if isinstance(body, dict) and "input" in body else body


def references_of(asked: TurnFields) -> list[str]:
    """Return the ids of the items that the input refers to."""
    items = [] if isinstance(asked.input, str) else asked.input
    return [item.id for item in items if isinstance(item, ItemReference)]


def turn_request(
    asked: ResponseRequest | RunRequest,
    body: Mapping[str, Any],
    default_model: str,
    stored: Mapping[str, Mapping[str, Any]],
) -> TurnRequest:
    """Build the turn. `stored` has the items that the input refers to, by id."""
    model = asked.model or default_model
    tools = read_tools(body, model)
    options = {**_options(asked), **tools.options, "hermes": {**_kept(asked, model), **tools.kept}}
    return TurnRequest(
        model=model,
        given=_input(asked, stored),
        options=check_options(encode_free(options), more=len(asked.instructions or "") * 4),
        user=asked.user or "",
        session=session_of(asked),
        notice=" ".join(filter(None, (tools.notice, *_notices(asked, unknown_fields(body, type(asked)))))),
    )


def session_of(asked: ResponseRequest | RunRequest) -> SessionId | None:
    """Return the session that the body names, under any of its names."""
    named = asked.conversation
    conversation = named.id if isinstance(named, ConversationReference) else named
    return one_session(*(SessionId(each) for each in (conversation, asked.session_id) if each))


def _input(asked: TurnFields, stored: Mapping[str, Mapping[str, Any]]) -> ConversationInput:
    messages = as_messages(asked.input, stored)
    last = "input" if isinstance(asked.input, str) else f"input[{len(asked.input) - 1}]"
    if not messages or messages[-1]["role"] not in ("user", "tool"):
        contradict(last, "The last item of input must be a message with the role user, or the output of a call.")
    if messages[-1]["role"] == "user" and not messages[-1]["content"]:
        contradict(last, "The last message is empty.")
    given = [{"role": "system", "content": asked.instructions}] if asked.instructions else []
    return split([*given, *messages], "input")


def _options(asked: TurnFields) -> dict[str, Any]:
    """Return the options for the model, under the names of chat completions."""
    wanted = {
        "temperature": asked.temperature,
        "top_p": asked.top_p,
        "user": asked.user,
        "max_completion_tokens": asked.max_output_tokens,
        "reasoning_effort": asked.reasoning.effort if asked.reasoning else None,
        "verbosity": asked.text.verbosity if asked.text else None,
        "response_format": _response_format(asked.text.format) if asked.text else None,
    }
    return {name: value for name, value in wanted.items() if value is not None}


def _response_format(wanted: TextFormat | JsonObjectFormat | JsonSchemaFormat | None) -> Mapping[str, Any] | None:
    match wanted:
        case JsonObjectFormat():
            return {"type": "json_object"}
        case JsonSchemaFormat():
            fields = msgspec.to_builtins(wanted)
            return {"type": fields.pop("type"), "json_schema": fields}
        case _:
            return None


def _kept(asked: ResponseRequest | RunRequest, model: str) -> dict[str, Any]:
    """Return what the client gets back with the response, and the instructions of this turn."""
    kept: dict[str, Any] = {"model": model, "metadata": asked.metadata or {}}
    if asked.instructions:
        kept["instructions"] = asked.instructions
    if isinstance(asked, RunRequest):
        return kept
    shown = {
        "previous_response_id": asked.previous_response_id,
        "conversation": session_of(asked) if asked.conversation else None,
        "background": asked.background or None,
        "truncation": asked.truncation,
    }
    return kept | {"store": asked.store is not False} | {name: x for name, x in shown.items() if x is not None}


def _notices(asked: ResponseRequest | RunRequest, unknown: list[str]) -> list[str]:
    without_effect = [name for name in HINTS if getattr(asked, name, None) is not None]
    if asked.reasoning and asked.reasoning.summary:
        without_effect.append("reasoning.summary")
    if isinstance(asked, ResponseRequest) and asked.truncation == "disabled":
        without_effect.append("truncation (a long conversation is compressed)")
    return notices(without_effect, unknown)
