"""Body of POST /v1/chat/completions, and the turn that it asks for.

Every message of the turn has known keys, and its text as one string. Fields without effect are reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias, TypeGuard, assert_never

import msgspec
from msgspec import Meta

from hermes.adapters.http.field import contradict, encode_free
from hermes.adapters.http.schema import Fields, FilledText, Metadata, SessionIdText, Text, decode, unknown_fields
from hermes.adapters.openai_api.responses.input_items import PlainText, RefusalPart
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
from hermes.domain.media.reference import content_of, named_by
from hermes.domain.values import dataclass


class ImageAddress(Fields):
    url: Text
    detail: Text | None = None


class ImagePart(Fields, tag="image_url", tag_field="type"):
    """A picture: a data: or http(s): URL."""

    image_url: ImageAddress | Text


class FilePart(Fields, tag="file", tag_field="type"):
    """A document: its data, or an uploaded file."""

    file: dict[str, Any]


class AudioPart(Fields, tag="input_audio", tag_field="type"):
    """Audio. The model gets a note instead."""

    input_audio: dict[str, Any]


ChatPart: TypeAlias = PlainText | RefusalPart | ImagePart | FilePart | AudioPart
ChatContent: TypeAlias = Text | list[ChatPart]


class FunctionName(Fields):
    name: FilledText
    arguments: Text


class ToolCall(Fields):
    id: FilledText
    function: FunctionName


class SystemMessage(Fields, tag="system", tag_field="role"):
    content: ChatContent
    name: Text | None = None


class DeveloperMessage(Fields, tag="developer", tag_field="role"):
    content: ChatContent
    name: Text | None = None


class UserMessage(Fields, tag="user", tag_field="role"):
    content: ChatContent
    name: Text | None = None


class AssistantMessage(Fields, tag="assistant", tag_field="role"):
    content: ChatContent | None = None
    tool_calls: list[ToolCall] | None = None
    function_call: FunctionName | None = None
    refusal: Text | None = None
    name: Text | None = None


class ToolMessage(Fields, tag="tool", tag_field="role"):
    tool_call_id: FilledText
    content: ChatContent
    name: Text | None = None


class FunctionMessage(Fields, tag="function", tag_field="role"):
    """Result of a `function_call`, the older form of a tool call."""

    name: FilledText
    content: ChatContent | None = None


ChatMessage: TypeAlias = (
    SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage | FunctionMessage
)


class NamedSchema(Fields):
    name: FilledText
    schema: dict[str, Any] | None = None
    description: Text | None = None
    strict: bool | None = None


class SchemaFormat(Fields, tag="json_schema", tag_field="type"):
    """JSON of a schema."""

    json_schema: NamedSchema


class StreamOptions(Fields):
    include_usage: bool | None = None


class ChatRequest(Fields):
    """A chat completion. The last message is the user's and not empty, or the result of a tool call."""

    model: FilledText
    messages: Annotated[list[ChatMessage], Meta(min_length=1, max_length=MAX_MESSAGES)]
    n: Annotated[int, Meta(ge=1, le=1)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    session_id: SessionIdText | None = None
    conversation: SessionIdText | ConversationReference | None = None
    previous_response_id: FilledText | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    max_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    stop: Text | Annotated[list[Text], Meta(max_length=4)] | None = None
    response_format: TextFormat | JsonObjectFormat | SchemaFormat | None = None
    reasoning_effort: Effort | None = None
    verbosity: Verbosity | None = None
    logit_bias: dict[str, Annotated[float, Meta(ge=-100, le=100)]] | None = None
    prediction: dict[str, Any] | None = None
    user: Text | None = None
    metadata: Metadata | None = None
    store: bool | None = None
    tools: list[dict[str, Any]] | None = None
    functions: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    function_call: Any = None
    parallel_tool_calls: bool | None = None
    hermes: HermesWish | None = None
    logprobs: bool | None = None
    top_logprobs: Unsupported = None
    modalities: list[Literal["text"]] | None = None
    audio: Unsupported = None
    service_tier: Text | None = None
    prompt_cache_key: Text | None = None
    safety_identifier: Text | None = None


_PASSED_ON = (
    *("temperature", "top_p", "max_tokens", "max_completion_tokens", "presence_penalty", "frequency_penalty"),
    *("seed", "stop", "reasoning_effort", "verbosity", "logit_bias", "prediction", "user"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTurn:
    """A checked request."""

    model: str
    given: ConversationInput
    options: bytes  # JSON object for the model
    user: str
    stream: bool
    include_usage: bool
    session: SessionId | None
    previous: str | None
    notice: str


def check_chat_request(body: Any) -> None:
    decode(body, ChatRequest)


def parse_chat_request(body: Any) -> ChatTurn:
    asked = decode(body, ChatRequest)
    if asked.logprobs:
        contradict("logprobs", "logprobs are not available.")
    tools = read_tools(body, asked.model)
    kept = {**({"metadata": asked.metadata} if asked.metadata else {}), **tools.kept}
    options = {**_options(asked), **tools.options, **({"hermes": kept} if kept else {})}
    return ChatTurn(
        model=asked.model,
        given=split(_messages(asked.messages), "messages"),
        options=check_options(encode_free(options)),
        user=asked.user or "",
        stream=bool(asked.stream),
        include_usage=bool(asked.stream_options and asked.stream_options.include_usage),
        session=_session(asked),
        previous=asked.previous_response_id,
        notice=" ".join(filter(None, (tools.notice, *_notices(asked, body)))),
    )


def _session(asked: ChatRequest) -> SessionId | None:
    named = asked.conversation
    conversation = named.id if isinstance(named, ConversationReference) else named
    return one_session(*(SessionId(each) for each in (conversation, asked.session_id) if each))


def _options(asked: ChatRequest) -> dict[str, Any]:
    options = {name: value for name in _PASSED_ON if (value := getattr(asked, name)) is not None}
    if isinstance(asked.stop, str):
        options["stop"] = [asked.stop]
    if asked.response_format is not None:
        options["response_format"] = msgspec.to_builtins(asked.response_format)
    return {name: value for name, value in options.items() if value != []}


def _notices(asked: ChatRequest, body: Mapping[str, Any]) -> list[str]:
    without_effect = [name for name in HINTS if getattr(asked, name, None) is not None]
    if asked.store is False:
        without_effect.append("store")
    return notices(without_effect, unknown_fields(body, ChatRequest))


# ---------------------------------------------------------------- messages


def _messages(given: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    messages = [_message(message) for message in given]
    place = f"messages[{len(messages) - 1}]"
    if messages[-1]["role"] not in ("user", "tool"):
        contradict(f"{place}.role", "The last message must have the role user or tool.")
    if messages[-1]["role"] == "user" and not messages[-1]["content"]:
        contradict(f"{place}.content", "The last message is empty.")
    return messages


def _message(given: ChatMessage) -> dict[str, Any]:
    name = {"name": given.name} if given.name and not isinstance(given, FunctionMessage) else {}
    match given:
        case SystemMessage() | DeveloperMessage() | UserMessage():
            role = given.__struct_config__.tag
            return {"role": role, "content": _content(given.content), **name}
        case AssistantMessage():
            return {"role": "assistant", **_spoken(given), **name}
        case ToolMessage():
            return {"role": "tool", "content": _content(given.content), **name, "tool_call_id": given.tool_call_id}
        case FunctionMessage():
            return {"role": "tool", "content": _content(given.content or ""), "tool_call_id": f"call_{given.name}"}
        case _:
            assert_never(given)


def _spoken(given: AssistantMessage) -> dict[str, Any]:
    calls = [_call(call.id, call.function) for call in given.tool_calls or ()]
    if given.function_call is not None:
        calls.append(_call(f"call_{given.function_call.name}", given.function_call))
    content = given.content if given.content is not None else given.refusal
    text = None if content is None and calls else _content(content or "")
    return {"content": text, **({"tool_calls": calls} if calls else {})}


def _call(name: str, function: FunctionName) -> dict[str, Any]:
    return {"id": name, "type": "function", "function": {"name": function.name, "arguments": function.arguments}}


def _content(content: ChatContent) -> Any:
    """Return the text, or with stored pictures a list of parts. Others were replaced before by notes."""
    if isinstance(content, str):
        return content
    texts = [part.text if isinstance(part, PlainText) else part.refusal for part in content if _has_text(part)]
    pictures = [msgspec.to_builtins(part) for part in content if isinstance(part, ImagePart)]
    return content_of("\n".join(texts), [name for part in pictures if (name := named_by(part))])


def _has_text(part: ChatPart) -> TypeGuard[PlainText | RefusalPart]:
    return isinstance(part, PlainText | RefusalPart)
