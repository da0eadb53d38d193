"""Driver of Pydantic AI: its agent on chat completions and on responses."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.clients.drivers.protocol import Answer, Ask, ClientTools, Connection, serve


class Person(BaseModel):
    name: str
    age: int


class PydanticAI:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        provider = OpenAIProvider(base_url=connection.base_url, api_key=connection.key)
        kind = OpenAIChatModel if connection.mode == "chat" else OpenAIResponsesModel
        self._model = kind("hermes", provider=provider)
        self._histories: dict[str, list[Any]] = {}
        self._loop = asyncio.Runner()

    def __call__(self, ask: Ask) -> Answer:
        return self._loop.run(self._parsed(ask) if ask.structured else self._answer(ask))

    async def _answer(self, ask: Ask) -> Answer:
        tools = ClientTools()
        agent = Agent(self._model, tools=tools.functions(ask.tools), retries=0)
        options = {
            "message_history": self._histories.get(ask.conversation),
            "model_settings": {"extra_headers": ask.headers},
        }
        if ask.stream:
            return await self._streamed(ask, agent, options, tools)
        result = await agent.run(_content(ask), **options)
        self._histories[ask.conversation] = result.all_messages()
        return Answer(text=result.output, runs=tools.runs)

    async def _streamed(self, ask: Ask, agent: Any, options: dict[str, Any], tools: ClientTools) -> Answer:
        text = ""
        async with agent.run_stream(_content(ask), **options) as result:
            async for so_far in result.stream_text(debounce_by=None):
                text = so_far
                self._connection.on_chunk()
                if ask.abandon:
                    await result.cancel()
                    return Answer()
            self._histories[ask.conversation] = result.all_messages()
        return Answer(text=text, runs=tools.runs)

    async def _parsed(self, ask: Ask) -> Answer:
        """Structured output in both ways that Pydantic AI has for such models: a tool, and a schema."""
        people = []
        for output in (Person, NativeOutput(Person)):
            agent = Agent(self._model, output_type=output, retries=0)
            people.append((await agent.run(ask.text, model_settings={"extra_headers": ask.headers})).output)
        if people[0] != people[1]:
            raise ValueError(f"tool and schema differ: {people}")
        return Answer(parsed=people[0].model_dump())


def _content(ask: Ask) -> Any:
    if not ask.picture:
        return ask.text
    kind, _, data = ask.picture.removeprefix("data:").partition(";base64,")
    return [ask.text, BinaryContent(data=b64decode(data), media_type=kind)]


if __name__ == "__main__":
    serve(PydanticAI)
