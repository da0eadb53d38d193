"""Driver of the openai package: chat completions and responses."""

from __future__ import annotations

from typing import Any

from openai import OpenAI
from pydantic import BaseModel

from tests.clients.drivers.protocol import Answer, Ask, ClientTools, Connection, parameters, serve


class Person(BaseModel):
    name: str
    age: int


class Chat:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._client = OpenAI(base_url=connection.base_url, api_key=connection.key)
        self._histories: dict[str, list[Any]] = {}

    def __call__(self, ask: Ask) -> Answer:
        history = self._histories.setdefault(ask.conversation, [])
        history.append({"role": "user", "content": _chat_content(ask)})
        tools = ClientTools()
        offered = [
            {"type": "function", "function": {"name": name, "parameters": parameters(name)}} for name in ask.tools
        ]
        options: dict[str, Any] = {"model": "hermes", "extra_headers": ask.headers}
        if offered:
            options["tools"] = offered
        if ask.structured:
            return self._parsed(history, options)
        while True:
            message = self._message(ask, history, options)
            if message is None:
                return Answer()
            history.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return Answer(text=message.content or "", runs=tools.runs)
            for call in message.tool_calls:
                result = tools.run(call.function.name, call.function.arguments)
                history.append({"role": "tool", "tool_call_id": call.id, "content": result})

    def _message(self, ask: Ask, history: list[Any], options: dict[str, Any]) -> Any:
        """The next message of the model; None if the stream was abandoned."""
        if not ask.stream:
            return self._client.chat.completions.create(messages=history, **options).choices[0].message
        with self._client.chat.completions.stream(messages=history, **options) as stream:
            for event in stream:
                if event.type == "content.delta" and event.delta:
                    self._connection.on_chunk()
                    if ask.abandon:
                        return None
            return stream.get_final_completion().choices[0].message

    def _parsed(self, history: list[Any], options: dict[str, Any]) -> Answer:
        completion = self._client.chat.completions.parse(messages=history, response_format=Person, **options)
        person = completion.choices[0].message.parsed
        return Answer(parsed=person.model_dump() if person else None)


class Responses:
    """Keeps the history itself, as `store=False` programs do: all output items go back as input."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._client = OpenAI(base_url=connection.base_url, api_key=connection.key)
        self._histories: dict[str, list[Any]] = {}

    def __call__(self, ask: Ask) -> Answer:
        history = self._histories.setdefault(ask.conversation, [])
        history.append({"role": "user", "content": _responses_content(ask)})
        tools = ClientTools()
        options: dict[str, Any] = {"model": "hermes", "extra_headers": ask.headers}
        if ask.tools:
            options["tools"] = [
                {"type": "function", "name": name, "parameters": parameters(name), "strict": True}
                for name in ask.tools
            ]
        if ask.structured:
            parsed = self._client.responses.parse(input=history, text_format=Person, **options)
            person = parsed.output_parsed
            return Answer(parsed=person.model_dump() if person else None)
        while True:
            response = self._response(ask, history, options)
            if response is None:
                return Answer()
            history += [item.model_dump(exclude_none=True) for item in response.output]
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                return Answer(text=response.output_text, runs=tools.runs)
            for call in calls:
                result = tools.run(call.name, call.arguments)
                history.append({"type": "function_call_output", "call_id": call.call_id, "output": result})

    def _response(self, ask: Ask, history: list[Any], options: dict[str, Any]) -> Any:
        """The next response of the model; None if the stream was abandoned."""
        if not ask.stream:
            return self._client.responses.create(input=history, **options)
        with self._client.responses.stream(input=history, **options) as stream:
            for event in stream:
                if event.type == "response.output_text.delta":
                    self._connection.on_chunk()
                    if ask.abandon:
                        return None
            return stream.get_final_response()


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
