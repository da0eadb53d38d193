"""Driver of the OpenAI Agents SDK: its chat-completions model and its responses model."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from pydantic import BaseModel

from tests.clients.drivers.protocol import Answer, Ask, ClientTools, Connection, serve

set_tracing_disabled(disabled=True)  # traces would go to another server


class Person(BaseModel):
    name: str
    age: int


class Agents:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        client = AsyncOpenAI(base_url=connection.base_url, api_key=connection.key)
        kind = OpenAIChatCompletionsModel if connection.mode == "chat" else OpenAIResponsesModel
        self._model = kind(model="hermes", openai_client=client)
        self._histories: dict[str, list[Any]] = {}
        self._loop = asyncio.Runner()

    def __call__(self, ask: Ask) -> Answer:
        return self._loop.run(self._answer(ask))

    async def _answer(self, ask: Ask) -> Answer:
        tools = ClientTools()
        agent = Agent(
            name="client",
            model=self._model,
            model_settings=ModelSettings(extra_headers=ask.headers),
            tools=[function_tool(function) for function in tools.functions(ask.tools)],
            output_type=Person if ask.structured else None,
        )
        given = [*self._histories.get(ask.conversation, []), {"role": "user", "content": _content(ask)}]
        result = await (self._streamed(ask, agent, given) if ask.stream else Runner.run(agent, given))
        if result is None:
            return Answer()
        self._histories[ask.conversation] = result.to_input_list()
        if ask.structured:
            return Answer(parsed=result.final_output.model_dump())
        return Answer(text=result.final_output, runs=tools.runs)

    async def _streamed(self, ask: Ask, agent: Any, given: list[Any]) -> Any:
        """The whole result; None if the stream was abandoned."""
        result = Runner.run_streamed(agent, given)
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                self._connection.on_chunk()
                if ask.abandon:
                    result.cancel()
        return None if ask.abandon else result


def _content(ask: Ask) -> Any:
    if not ask.picture:
        return ask.text
    picture = {"type": "input_image", "image_url": ask.picture, "detail": "auto"}
    return [{"type": "input_text", "text": ask.text}, picture]


if __name__ == "__main__":
    serve(Agents)
