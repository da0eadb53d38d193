"""Driver of LlamaIndex with its OpenAI-like model."""

from __future__ import annotations

import gc
from contextlib import closing
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel

from tests.clients.drivers.protocol import Answer, Ask, ClientTools, Connection, serve


class Person(BaseModel):
    """A person."""

    name: str
    age: int


class LlamaIndex:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._model = OpenAILike(
            model="hermes",
            api_base=connection.base_url,
            api_key=connection.key,
            is_chat_model=True,  # its default is the legacy completions route
            is_function_calling_model=True,
        )
        self._histories: dict[str, list[Any]] = {}

    def __call__(self, ask: Ask) -> Answer:
        history = self._histories.setdefault(ask.conversation, [])
        history.append(ChatMessage(role=MessageRole.USER, blocks=_blocks(ask)))
        options: dict[str, Any] = {"extra_headers": ask.headers}
        if ask.structured:
            person = self._model.as_structured_llm(Person).chat(history, **options).raw
            return Answer(parsed=person.model_dump())
        tools = ClientTools()
        if ask.tools:
            offered = [FunctionTool.from_defaults(function) for function in tools.functions(ask.tools)]
            options["tools"] = [tool.metadata.to_openai_tool() for tool in offered]
        while True:
            response = self._response(ask, history, options)
            if response is None:
                return Answer()
            history.append(response.message)
            calls = self._model.get_tool_calls_from_response(response, error_on_no_tool_call=False)
            if not calls:
                return Answer(text=response.message.content or "", runs=tools.runs)
            for call in calls:
                result = getattr(tools, call.tool_name)(**call.tool_kwargs)
                fields = {"tool_call_id": call.tool_id, "name": call.tool_name}
                history.append(ChatMessage(role=MessageRole.TOOL, content=result, additional_kwargs=fields))

    def _response(self, ask: Ask, history: list[Any], options: dict[str, Any]) -> Any:
        """The next response of the model; None if the stream was abandoned."""
        if not ask.stream:
            return self._model.chat(history, **options)
        response = None
        with closing(self._model.stream_chat(history, **options)) as stream:
            for response in stream:
                if response.delta:
                    self._connection.on_chunk()
                    if ask.abandon:
                        break
        gc.collect()  # a closed stream holds its connection until then
        return None if ask.abandon else response


def _blocks(ask: Ask) -> list[Any]:
    text = TextBlock(text=ask.text)
    return [text, ImageBlock(url=ask.picture)] if ask.picture else [text]


if __name__ == "__main__":
    serve(LlamaIndex)
