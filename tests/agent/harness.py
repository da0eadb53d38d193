"""What tests of the agent share: a model that plays scripts, a hub that remembers, a few small tools."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

from hermes.agent.accounting import Budget
from hermes.agent.compression import CompressionSettings
from hermes.agent.image_policy import ImagePolicy
from hermes.agent.ledger import Ledger
from hermes.agent.model_step import ModelStep, ThinkingSettings
from hermes.agent.models.catalog import make_model
from hermes.agent.models.chain import ModelChain
from hermes.agent.models.key_pool import ProviderKey
from hermes.agent.models.model_set import ModelSet, ModelTerms
from hermes.agent.models.slots import Slots
from hermes.agent.runner import AgentRunner
from hermes.agent.summariser import Summariser, SummarySettings
from hermes.agent.tool_step import Folders, ToolStep
from hermes.config.providers import PROVIDERS
from hermes.domain.errors import ModelError
from hermes.domain.events import CallProgress, Event, Notice, TextDelta, TextReset
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.provider import Provider
from hermes.domain.session.jobs import ModelJob, ModelReport, RetryReport, ToolJob
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.tool_call import Effect, Gate, Verdict
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.turn.usage import Price, Usage
from hermes.domain.values import dataclass
from hermes.ports.agent import Model, ModelChunk, ModelDone, ModelRequest, ModelText
from hermes.ports.hub import Subscription
from hermes.tools.clarify import clarify_tool
from hermes.tools.tool import Tool, ToolContext, ToolError, tool
from hermes.tools.toolbox import Toolbox

NOW = 1_800_000_000.0
DONE = ModelDone(finish_reason="stop", model="m", usage=Usage(prompt_tokens=1, completion_tokens=2))
Script = tuple[ModelChunk | Exception | asyncio.Event, ...]


class RecordingHub:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def publish(self, event: Event) -> None:
        self.events.append(event)

    def subscribe(
        self,
        *,
        turn: TurnId | None = None,
        session: SessionId | None = None,
        late: bool = False,
        text: bool = True,
    ) -> Subscription:
        raise NotImplementedError

    def notices_of(self, _: TurnId) -> list[Notice]:
        return []

    def texts(self, turn: str = "t1") -> list[str]:
        """What was said; a line for each time that it was taken back."""
        return [
            event.text if isinstance(event, TextDelta) else "(taken back)"
            for event in self.events
            if isinstance(event, TextDelta | TextReset) and event.turn == turn
        ]

    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice | CallProgress)]


class ScriptedModel:
    """Plays one script per call: chunks, errors to raise, and events to wait for."""

    def __init__(self, *scripts: Script, name: str = "m") -> None:
        self.name = name
        self.provider = "test"
        self.endpoint = "http://test"
        self.scripts = list(scripts)
        self.requests: list[ModelRequest] = []
        self.running = 0
        self.most_running = 0
        self.closed = False

    @property
    def calls(self) -> int:
        return len(self.requests)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        script = self.scripts[min(self.calls, len(self.scripts) - 1)]
        self.requests.append(request)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            for step in script:
                await asyncio.sleep(0)
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, asyncio.Event):
                    await step.wait()
                else:
                    yield step
        finally:
            self.running -= 1

    async def close(self) -> None:
        assert not self.running
        self.closed = True


def text(*words: str) -> tuple[ModelText, ...]:
    return tuple(ModelText(text=word) for word in words)


def says(*words: str) -> Script:
    return (*text(*words), DONE)


def calls(*made: tuple[str, str, dict[str, Any]]) -> Script:
    """An answer that asks for tools: id, name and arguments of each."""
    asked = tuple(
        {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for id_, name, arguments in made
    )
    return (ModelDone(finish_reason="tool_calls", model="m", usage=DONE.usage, tool_calls=asked),)


def broken(kind: FailureKind, retry_after_s: float | None = None) -> ModelError:
    return ModelError(Failure(kind=kind, message="no", retry_after_s=retry_after_s))


# ---------------------------------------------------------------- tools


def small_tools() -> tuple[Tool, ...]:
    @tool("small", parallel=True, effect=Effect.PURE)
    async def echo(context: ToolContext, *, words: Annotated[str, "what to say"]) -> str:
        """Say it again."""
        context.progress("saying")
        return words

    @tool("small", decide=lambda arguments, _: Gate(verdict=Verdict.ASK, reason="it is loud", rules=("shout",)))
    async def shout(context: ToolContext, *, words: Annotated[str, "what to say"]) -> str:
        """Say it loudly."""
        return words.upper()

    @tool("small")
    async def stumble(context: ToolContext) -> str:
        """Fail in a way that the model can do something about."""
        raise ToolError("there is a stone")

    @tool("small")
    async def sleep(context: ToolContext) -> str:
        """Wait until the end of days."""
        await asyncio.Event().wait()
        return "never"

    return echo, shout, stumble, sleep, clarify_tool()


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallWorkshop:
    toolbox: Toolbox
    build_prompt: Callable[[ModelJob, Path], Awaitable[str]]


async def small_prompt(job: ModelJob, folder: Path) -> str:
    return f"be kind to {job.session} in {folder.name}"


async def workshop() -> SmallWorkshop:
    return SmallWorkshop(
        toolbox=Toolbox(small_tools(), toolsets={"default": ("small", "clarify")}),
        build_prompt=small_prompt,
    )


def endpoint_model(provider: Provider, base_url: str, *, name: str, key: str | None = None, **changes: Any) -> Model:
    keys = [ProviderKey(value=key, source="TEST_KEY")] if key else []
    fields: dict[str, Any] = {"clock": time.time, "keys": keys}
    return make_model(provider, name=name, base_url=base_url, **(fields | changes))


def chat_model(base_url: str, *, name: str = "fake", key: str | None = None, **changes: Any) -> Model:
    """Return a model of a chat completions endpoint."""
    return endpoint_model(PROVIDERS["custom"], base_url, name=name, key=key, **changes)


async def heard(model: Model, request: ModelRequest) -> list[ModelChunk]:
    """Return everything that a model streams."""
    return [chunk async for chunk in model.stream(request)]


# ---------------------------------------------------------------- jobs


def user(words: str) -> EncodedMessage:
    return EncodedMessage(json.dumps({"role": "user", "content": words}).encode())


def model_job(turn: str = "t1", **changes: Any) -> ModelJob:
    fields: dict[str, Any] = {
        "session": SessionId("s"),
        "root": SessionId("s"),
        "turn": TurnId(turn),
        "attempt": 2,
        "replies": 0,
        "messages": (user("canary text"),),
        "options": b"{}",
    }
    return ModelJob(**(fields | changes))


def tool_job(name: str, arguments: dict[str, Any] | str, call: str = "c1") -> ToolJob:
    return ToolJob(
        session=SessionId("s"),
        root=SessionId("s"),
        turn=TurnId("t1"),
        attempt=2,
        call=call,
        name=name,
        arguments=arguments if isinstance(arguments, str) else json.dumps(arguments),
    )


def terms(context_window: int, price: Price = Price()) -> Callable[[str, str], ModelTerms]:  # noqa: B008 - a value
    return lambda _provider, _model: ModelTerms(context_window=context_window, price=price)


def thinking_settings(
    *,
    context_window: int = 8000,
    max_replies: int = 5,
    compression: CompressionSettings = CompressionSettings(),  # noqa: B008 - a value
    price: Price = Price(),  # noqa: B008
    **changes: Any,
) -> ThinkingSettings:
    return ThinkingSettings(
        max_replies=max_replies, compression=compression, terms=terms(context_window, price), **changes
    )


# ---------------------------------------------------------------- everything together


class AgentBench:
    """A runner whose sleeps are recorded instead of slept, and the reports it made."""

    def __init__(
        self,
        folder: Path,
        *models: Model,
        max_concurrent: int = 4,
        wake: asyncio.Event | None = None,
        settings: ThinkingSettings | None = None,
        budget: Budget = Budget(),  # noqa: B008 - a value
        sight: ImagePolicy | None = None,
    ) -> None:
        self.wake = wake
        self.hub = RecordingHub()
        self.slept: list[float] = []
        self.reports: list[Any] = []
        self.retries: list[RetryReport] = []
        self.said: list[str] = []
        self.folders = Folders(folder)
        self.ledger = Ledger(budget=budget, clock=lambda: NOW)
        compression = CompressionSettings()
        self.settings = settings or thinking_settings(compression=compression)
        self.models = models
        self.thinking = ModelStep(
            settings=self.settings,
            workshop=workshop,
            folders=self.folders,
            ledger=self.ledger,
            hub=self.hub,
            sight=sight,
        )
        self.summarising = Summariser(
            settings=SummarySettings(compression=compression, terms=terms(8000)),
            folders=self.folders,
            ledger=self.ledger,
            clock=lambda: NOW,
        )
        self.acting = ToolStep(workshop=workshop, folders=self.folders, hub=self.hub)
        self.caller = ModelChain(slots=Slots(max_concurrent), random=lambda: 0.5, sleep=self.sleep)
        self.runner = AgentRunner(
            models=ModelSet(models),
            thinking=self.thinking,
            acting=self.acting,
            summarising=self.summarising,
            max_concurrent=max_concurrent,
            random=lambda: 0.5,
            sleep=self.sleep,
        )

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if self.wake is not None:
            await self.wake.wait()

    def start(self, turn: str = "t1") -> Callable[[], None]:
        def report(made: ModelReport | RetryReport) -> None:
            if isinstance(made, RetryReport):
                self.retries.append(made)
            else:
                self.reports.append(made)

        return self.runner.think(model_job(turn), report).cancel

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110 - the conditions are of many kinds
                await asyncio.sleep(0.001)

    async def run(self, turn: str = "t1") -> ModelReport:
        self.start(turn)
        await self.until(lambda: self.runner.active == 0)
        (report,) = self.reports
        assert isinstance(report, ModelReport)
        return report

    async def failure(self) -> Failure:
        failure = (await self.run()).failure
        assert failure is not None
        return failure

    async def think(self, **changes: Any) -> ModelReport:
        return await self.thinking.answer(model_job(**changes), ModelSet(self.models), self.caller, self.said)
