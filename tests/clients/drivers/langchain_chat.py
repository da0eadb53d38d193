"""Driver of langchain-openai: ChatOpenAI on chat completions and on responses."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from tests.clients.drivers.protocol import Answer, Ask, ClientTools, Connection, serve


class Person(BaseModel):
    """A person."""

    name: str
    age: int


class LangChain:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._model = ChatOpenAI(
            model="hermes",
            base_url=connection.base_url,
            api_key=connection.key,
            use_responses_api=connection.mode == "responses",
        )
        self._histories: dict[str, list[Any]] = {}

    def __call__(self, ask: Ask) -> Answer:
        history = self._histories.setdefault(ask.conversation, [])
        history.append(HumanMessage(_content(ask)))
        if ask.structured:
            return self._parsed(history, ask)
        tools = ClientTools()
        model = self._model.bind_tools(tools.functions(ask.tools)) if ask.tools else self._model
        while True:
            message = self._message(ask, model, history)
            if message is None:
                return Answer()
            history.append(message)
            if not message.tool_calls:
                return Answer(text=message.text, runs=tools.runs)
            for call in message.tool_calls:
                result = getattr(tools, call["name"])(**call["args"])
                history.append(ToolMessage(result, tool_call_id=call["id"]))

    def _parsed(self, history: list[Any], ask: Ask) -> Answer:
        """Structured output in both ways that LangChain has: a schema, and a tool that must be called."""
        people = [
            self._model.with_structured_output(Person, method=method).invoke(history, extra_headers=ask.headers)
            for method in ("json_schema", "function_calling")
        ]
        if people[0] != people[1]:
            raise ValueError(f"json_schema and function_calling differ: {people}")
        return Answer(parsed=people[0].model_dump())

    def _message(self, ask: Ask, model: Any, history: list[Any]) -> Any:
        """The next message of the model; None if the stream was abandoned."""
        if not ask.stream:
            return model.invoke(history, extra_headers=ask.headers)
        whole = None
        with closing(model.stream(history, extra_headers=ask.headers)) as stream:
            for chunk in stream:
                whole = chunk if whole is None else whole + chunk
                if chunk.text:
                    self._connection.on_chunk()
                    if ask.abandon:
                        return None
        return whole


def _content(ask: Ask) -> Any:
    if not ask.picture:
        return ask.text
    return [{"type": "text", "text": ask.text}, {"type": "image_url", "image_url": {"url": ask.picture}}]


if __name__ == "__main__":
    serve(LangChain)
