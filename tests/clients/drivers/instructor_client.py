"""Driver of Instructor: structured output through its wrapped client, everything else as it passes it on."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import instructor
from openai import OpenAI
from openai.lib.streaming.chat import ChatCompletionStreamState
from pydantic import BaseModel

from tests.clients.drivers.protocol import Answer, Ask, ClientLimitError, ClientTools, Connection, parameters, serve

MODES = {
    "chat": (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA),
    "responses": (instructor.Mode.RESPONSES_TOOLS,),
}


class Person(BaseModel):
    """A person."""

    name: str
    age: int


class Instructor:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        client = OpenAI(base_url=connection.base_url, api_key=connection.key)
        self._clients = [instructor.from_openai(client, mode=mode) for mode in MODES[connection.mode]]
        self._histories: dict[str, list[Any]] = {}

    def __call__(self, ask: Ask) -> Answer:
        history = self._histories.setdefault(ask.conversation, [])
        history.append({"role": "user", "content": self._content(ask)})
        if ask.structured:
            return self._parsed(history, ask)
        tools = ClientTools()
        while True:
            items = self._items(ask, history)
            if items is None:
                return Answer()
            results = _results(items, tools)
            if not results:
                history.append({"role": "assistant", "content": _text(items)})
                return Answer(text=_text(items), runs=tools.runs)
            history += [*items, *results]

    def _parsed(self, history: list[Any], ask: Ask) -> Answer:
        people = [
            self._create(client, history, ask, response_model=Person, max_retries=0) for client in self._clients
        ]
        found = [person.model_dump() for person in people]
        if found.count(found[0]) != len(found):
            raise ValueError(f"the modes differ: {found}")
        return Answer(parsed=found[0])

    def _create(self, client: Any, history: list[Any], ask: Ask, **options: Any) -> Any:
        options |= {"model": "hermes", "extra_headers": ask.headers}
        if self._connection.mode == "chat":
            return client.chat.completions.create(messages=history, **options)
        try:
            return client.responses.create(input=history, **options)
        except ValueError as error:
            if "Unsupported message type: function_call" in str(error):
                raise ClientLimitError("in responses mode it refuses the call items of a tool loop itself") from None
            raise

    def _items(self, ask: Ask, history: list[Any]) -> list[dict[str, Any]] | None:
        """What the model adds to the history; None if the stream was abandoned."""
        options: dict[str, Any] = {"response_model": None}
        if ask.tools:
            options["tools"] = [self._tool(name) for name in ask.tools]
        if not ask.stream:
            return _added(self._create(self._clients[0], history, ask, **options))
        with closing(self._create(self._clients[0], history, ask, stream=True, **options)) as stream:
            return self._read_stream(stream, ask)

    def _read_stream(self, stream: Any, ask: Ask) -> list[dict[str, Any]] | None:
        state: ChatCompletionStreamState[Any] = ChatCompletionStreamState()
        response = None
        for event in stream:
            if self._connection.mode == "chat":
                state.handle_chunk(event)
                text = event.choices and event.choices[0].delta.content
            else:
                text = event.type == "response.output_text.delta"
                response = event.response if event.type == "response.completed" else None
            if text:
                self._connection.on_chunk()
                if ask.abandon:
                    return None
        return _added(response or state.get_final_completion())

    def _tool(self, name: str) -> dict[str, Any]:
        if self._connection.mode == "chat":
            return {"type": "function", "function": {"name": name, "parameters": parameters(name)}}
        return {"type": "function", "name": name, "parameters": parameters(name), "strict": True}

    def _content(self, ask: Ask) -> Any:
        if not ask.picture:
            return ask.text
        if self._connection.mode == "chat":
            return [{"type": "text", "text": ask.text}, {"type": "image_url", "image_url": {"url": ask.picture}}]
        return [{"type": "input_text", "text": ask.text}, {"type": "input_image", "image_url": ask.picture}]


def _added(result: Any) -> list[dict[str, Any]]:
    if hasattr(result, "choices"):
        message = result.choices[0].message
        return [{"content": None, **message.model_dump(exclude_none=True)}]  # it wants the field in every message
    return [item.model_dump(exclude_none=True) for item in result.output]


def _results(items: list[dict[str, Any]], tools: ClientTools) -> list[dict[str, Any]]:
    results = []
    for item in items:
        for call in item.get("tool_calls") or ():
            result = tools.run(call["function"]["name"], call["function"]["arguments"])
            results.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        if item.get("type") == "function_call":
            result = tools.run(item["name"], item["arguments"])
            results.append({"type": "function_call_output", "call_id": item["call_id"], "output": result})
    return results


def _text(items: list[dict[str, Any]]) -> str:
    contents = [item["content"] for item in items if item.get("role") == "assistant"]
    return "".join(
        each if isinstance(each, str) else "".join(part.get("text", "") for part in each) for each in contents
    )


if __name__ == "__main__":
    serve(Instructor)
