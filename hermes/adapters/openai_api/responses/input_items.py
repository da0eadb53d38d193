"""Input items in OpenAI's format, and their conversion to chat messages. Pure.

Clients send back what they received: calls of server tools, references to stored items, reasoning, refusals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, assert_never

from hermes.adapters.http.schema import Fields, FilledText, Text, decode
from hermes.domain.history.message_chain import SERVER_CALL
from hermes.domain.media.reference import SCHEME, content_of, named_by, picture

Messages: TypeAlias = list[dict[str, Any]]

_NO_RESULT = "The call has no recorded result."


class InputText(Fields, tag="input_text", tag_field="type"):
    text: Text


class OutputText(Fields, tag="output_text", tag_field="type"):
    text: Text


class PlainText(Fields, tag="text", tag_field="type"):
    text: Text


class RefusalPart(Fields, tag="refusal", tag_field="type"):
    refusal: Text


class InputImage(Fields, tag="input_image", tag_field="type"):
    """A picture: a data: or http(s): URL, or an uploaded file."""

    image_url: str | None = None
    file_id: str | None = None


class InputFile(Fields, tag="input_file", tag_field="type"):
    """A document: its data, a URL, or an uploaded file."""

    filename: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    file_id: str | None = None


class ImageUrl(Fields, tag="image_url", tag_field="type"):
    """A picture, as in chat."""

    image_url: dict[str, str]


ContentPart: TypeAlias = InputText | OutputText | PlainText | RefusalPart | InputImage | InputFile | ImageUrl
Content: TypeAlias = Text | list[ContentPart]


class InputMessage(Fields, tag="message", tag_field="type"):
    """A message. `type` can be left out."""

    role: Literal["user", "assistant", "system", "developer"]
    content: Content | None = None  # null only from an assistant


class FunctionCall(Fields, tag="function_call", tag_field="type"):
    """A call of a client's tool."""

    call_id: FilledText
    name: FilledText
    arguments: Text


class FunctionCallOutput(Fields, tag="function_call_output", tag_field="type"):
    """Result of a client's tool."""

    call_id: FilledText
    output: Content


class McpCall(Fields, tag="mcp_call", tag_field="type"):
    """A call of a server tool, as in the output of an earlier response."""

    name: FilledText
    arguments: Text
    output: Text | None = None
    error: Any = None


class ItemReference(Fields, tag="item_reference", tag_field="type"):
    """A reference to an output item of an earlier response. Unknown ones are passed over."""

    id: FilledText


class ReasoningItem(Fields, tag="reasoning", tag_field="type"):
    """Reasoning of a model. It is passed over."""


class McpListTools(Fields, tag="mcp_list_tools", tag_field="type"):
    """Tools of an MCP server. They are passed over."""


InputItem: TypeAlias = (
    InputMessage | FunctionCall | FunctionCallOutput | McpCall | ItemReference | ReasoningItem | McpListTools
)


def with_types(items: Any) -> Any:
    """Add the type of messages, which can be left out."""
    if not isinstance(items, list):
        return items
    return [{"type": "message", **item} if isinstance(item, dict) else item for item in items]


def as_messages(items: str | Sequence[InputItem], stored: Mapping[str, Mapping[str, Any]]) -> Messages:
    """Convert the items. `stored` has the referenced items by id."""
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    messages: Messages = []
    for item in items:
        _add(messages, item, stored)
    return messages


def _add(messages: Messages, item: InputItem, stored: Mapping[str, Mapping[str, Any]]) -> None:
    match item:
        case InputMessage(role=role, content=content):
            messages.append({"role": role, "content": _content(content or "")})
        case FunctionCall():
            _add_call(messages, _call(item.call_id, item))
        case FunctionCallOutput(call_id=call, output=output):
            messages.append({"role": "tool", "tool_call_id": call, "content": _text(output)})
        case McpCall():
            name = f"{SERVER_CALL}{len(messages)}"  # some endpoints accept only short ids
            messages.append({"role": "assistant", "content": None, "tool_calls": [_call(name, item)]})
            messages.append({"role": "tool", "tool_call_id": name, "content": _result(item)})
        case ItemReference(id=name):
            if name in stored:
                kinds: Any = InputMessage | McpCall | FunctionCall
                _add(messages, decode(stored[name], kinds), {})
        case ReasoningItem() | McpListTools():
            pass
        case _:
            assert_never(item)


def _add_call(messages: Messages, call: dict[str, Any]) -> None:
    """Add a call. Calls of one model message are merged into one message."""
    if messages and messages[-1]["role"] == "assistant":
        messages[-1].setdefault("tool_calls", []).append(call)
    else:
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})


def _call(name: str, item: FunctionCall | McpCall) -> dict[str, Any]:
    return {"id": name, "type": "function", "function": {"name": item.name, "arguments": item.arguments}}


def _result(item: McpCall) -> str:
    if item.output is not None:
        return item.output
    error = item.error
    if isinstance(error, dict):
        parts = error.get("content")
        texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        error = error.get("message") or "\n".join(text for text in texts if isinstance(text, str))
    return error if isinstance(error, str) and error else _NO_RESULT


def _content(content: Content) -> Any:
    """Return the text, or with stored pictures a list of parts."""
    parts = [] if isinstance(content, str) else content
    pictures = [
        picture(part.image_url.get("url", "").removeprefix(SCHEME)) for part in parts if isinstance(part, ImageUrl)
    ]
    return content_of(_text(content), [name for each in pictures if (name := named_by(each))])


def _text(content: Content) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text for part in content if (text := _part_text(part)) is not None)


def _part_text(part: ContentPart) -> str | None:
    """Return the text of a part. Pictures and files were replaced before (`hermes/media/input_part.py`)."""
    match part:
        case RefusalPart(refusal=text) | InputText(text=text) | OutputText(text=text) | PlainText(text=text):
            return text
        case InputImage() | InputFile() | ImageUrl():
            return None
