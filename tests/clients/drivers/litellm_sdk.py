"""Driver of LiteLLM's Python SDK: completion and responses."""

from __future__ import annotations

import json
import os
from typing import Any

from tests.clients.drivers.protocol import (
    PERSON_SCHEMA,
    Answer,
    Ask,
    ClientTools,
    Connection,
    parameters,
    serve,
)

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it fetches a price list when it is imported
import litellm

# LiteLLM collects streams of a responses model that it does not know.
litellm.register_model({"openai/hermes": {"litellm_provider": "openai", "supports_native_streaming": True}})


class Chat:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._histories: dict[str, list[Any]] = {}

    def __call__(self, ask: Ask) -> Answer:
        history = self._histories.setdefault(ask.conversation, [])
        history.append({"role": "user", "content": _chat_content(ask)})
        tools = ClientTools()
        options = {**_options(self._connection, ask), "messages": history}
        if ask.tools:
            options["tools"] = [
                {"type": "function", "function": {"name": name, "parameters": parameters(name)}} for name in ask.tools
            ]
        if ask.structured:
            schema = {"name": "person", "schema": PERSON_SCHEMA, "strict": True}
            wanted = {"type": "json_schema", "json_schema": schema}
            message = litellm.completion(**options, response_format=wanted).choices[0].message
            return Answer(parsed=json.loads(message.content))
        while True:
            message = self._message(ask, options)
            if message is None:
                return Answer()
            history.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return Answer(text=message.content or "", runs=tools.runs)
            for call in message.tool_calls:
                result = tools.run(call.function.name, call.function.arguments)
                history.append({"role": "tool", "tool_call_id": call.id, "content": result})

    def _message(self, ask: Ask, options: dict[str, Any]) -> Any:
        """The next message of the model; None if the stream was abandoned."""
        if not ask.stream:
            return litellm.completion(**options).choices[0].message
        chunks = []
        stream = litellm.completion(**options, stream=True)
        for chunk in stream:
            chunks.append(chunk)
            if chunk.choices and chunk.choices[0].delta.content:
                self._connection.on_chunk()
                if ask.abandon:
                    stream.completion_stream.close()
                    return None
        return litellm.stream_chunk_builder(chunks).choices[0].message


class Responses:
    """Keeps the history itself: all output items go back as input."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._histories: dict[str, list[Any]] = {}

    def __call__(self, ask: Ask) -> Answer:
        history = self._histories.setdefault(ask.conversation, [])
        history.append({"role": "user", "content": _responses_content(ask)})
        tools = ClientTools()
        options = {**_options(self._connection, ask), "input": history}
        if ask.tools:
            options["tools"] = [
                {"type": "function", "name": name, "parameters": parameters(name), "strict": True}
                for name in ask.tools
            ]
        if ask.structured:
            wanted = {"type": "json_schema", "name": "person", "schema": PERSON_SCHEMA, "strict": True}
            return Answer(parsed=json.loads(litellm.responses(**options, text={"format": wanted}).output_text))
        while True:
            response = self._response(ask, options)
            if response is None:
                return Answer()
            items = [
                item if isinstance(item, dict) else item.model_dump(exclude_none=True) for item in response.output
            ]
            history += items
            calls = [item for item in items if item["type"] == "function_call"]
            if not calls:
                return Answer(text=response.output_text, runs=tools.runs)
            for call in calls:
                result = tools.run(call["name"], call["arguments"])
                history.append({"type": "function_call_output", "call_id": call["call_id"], "output": result})

    def _response(self, ask: Ask, options: dict[str, Any]) -> Any:
        """The next response of the model; None if the stream was abandoned."""
        if not ask.stream:
            return litellm.responses(**options)
        done = None
        stream = litellm.responses(**options, stream=True)
        for event in stream:
            if event.type == "response.output_text.delta":
                self._connection.on_chunk()
                if ask.abandon:
                    stream.response.close()
                    return None
            if event.type in {"response.completed", "response.incomplete", "response.failed"}:
                done = event.response
        if done is None:
            raise ConnectionError("the stream ended without a last event")
        return done


def _options(connection: Connection, ask: Ask) -> dict[str, Any]:
    address = {"api_base": connection.base_url, "api_key": connection.key}
    return {"model": "openai/hermes", **address, "extra_headers": ask.headers}


def _chat_content(ask: Ask) -> Any:
    if not ask.picture:
        return ask.text
    return [{"type": "text", "text": ask.text}, {"type": "image_url", "image_url": {"url": ask.picture}}]


def _responses_content(ask: Ask) -> Any:
    if not ask.picture:
        return ask.text
    return [{"type": "input_text", "text": ask.text}, {"type": "input_image", "image_url": ask.picture}]


if __name__ == "__main__":
    serve(lambda connection: (Chat if connection.mode == "chat" else Responses)(connection))
