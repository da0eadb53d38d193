from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from loguru import logger

from hermes.agent.openai_model import OpenAIModel
from hermes.agent.retry import PATIENCE_S
from hermes.agent.turn import Slots, TurnRunner
from hermes.errors import ModelError
from hermes.events import Event, TextDelta
from hermes.ports import Model, ModelChunk, ModelDone, ModelRequest, ModelText, Subscription, TurnJob, TurnReport
from hermes.types import EncodedMessage, Failure, FailureKind, SessionId, TurnId, Usage
from tests.model_server import STALL, ModelServer, answer, delta, error, page, stream

K = FailureKind
DONE = ModelDone(finish_reason="stop", model="m", usage=Usage(prompt_tokens=1, completion_tokens=2))


class RecordingHub:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def publish(self, event: Event) -> None:
        self.events.append(event)

    def subscribe(self, *, turn: TurnId | None = None, session: SessionId | None = None) -> Subscription:
        raise NotImplementedError

    def texts(self, turn: str = "t1") -> list[str]:
        return [event.text for event in self.events if isinstance(event, TextDelta) and event.turn == turn]


class ScriptedModel:
    """Plays one script per call: chunks, errors to raise, and events to wait for."""

    def __init__(self, *scripts: tuple[ModelChunk | Exception | asyncio.Event, ...], name: str = "m") -> None:
        self.name = name
        self.scripts = list(scripts)
        self.calls = 0
        self.running = 0
        self.most_running = 0
        self.closed = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        script = self.scripts[min(self.calls, len(self.scripts) - 1)]
        self.calls += 1
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


class Bench:
    """A runner whose sleeps are recorded instead of slept, and the reports it made."""

    def __init__(self, model: Model, max_concurrent: int = 4, wake: asyncio.Event | None = None) -> None:
        self.wake = wake
        self.hub = RecordingHub()
        self.slept: list[float] = []
        self.reports: list[TurnReport] = []
        self.runner = TurnRunner(
            model=model, hub=self.hub, max_concurrent=max_concurrent, random=lambda: 0.5, sleep=self._sleep
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if self.wake is not None:
            await self.wake.wait()

    def start(self, turn: str = "t1") -> Callable[[], None]:
        messages = (EncodedMessage(b'{"role":"user","content":"canary text"}'),)
        job = TurnJob(session=SessionId("s"), turn=TurnId(turn), attempt=2, messages=messages, options=b"{}")
        return self.runner.start(job, self.reports.append).cancel

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while True:
                if condition():
                    return
                await asyncio.sleep(0.001)

    async def run(self, turn: str = "t1") -> TurnReport:
        self.start(turn)
        await self.until(lambda: self.runner.active == 0)
        (report,) = self.reports
        return report

    async def failure(self) -> Failure:
        failure = (await self.run()).failure
        assert failure is not None
        return failure


def text(*words: str) -> tuple[ModelText, ...]:
    return tuple(ModelText(text=word) for word in words)


def broken(kind: FailureKind, retry_after_s: float | None = None) -> ModelError:
    return ModelError(Failure(kind=kind, message="no", retry_after_s=retry_after_s))


async def test_an_answer_is_published_as_it_comes_and_reported_once() -> None:
    bench = Bench(ScriptedModel((*text("Hello ", "there"), DONE)))
    assert await bench.run() == TurnReport(
        turn=TurnId("t1"), attempt=2, text="Hello there", model="m", finish_reason="stop", usage=DONE.usage
    )
    assert bench.hub.texts() == ["Hello ", "there"]


async def test_a_failure_before_any_text_is_tried_again_as_asked() -> None:
    bench = Bench(ScriptedModel((broken(K.RATE_LIMIT, 7.0),), (broken(K.CONNECTION),), (*text("ok"), DONE)))
    assert (await bench.run()).text == "ok"
    assert bench.slept == [7.5, 1.0]


async def test_four_tries_are_the_end() -> None:
    model = ScriptedModel((broken(K.OVERLOADED),))
    bench = Bench(model)
    assert (await bench.failure()).kind == K.OVERLOADED
    assert model.calls == 4


async def test_after_text_went_out_a_failure_is_final() -> None:
    model = ScriptedModel((*text("half an "), broken(K.CONNECTION)), (*text("other"), DONE))
    bench = Bench(model)
    report = await bench.run()
    assert report.failure is not None
    assert (report.failure.kind, report.text, model.calls) == (K.CONNECTION, "", 1)


@pytest.mark.parametrize(
    ("script", "kind", "calls"),
    [
        (text("half an "), K.MALFORMED_REPLY, 1),
        ((), K.MALFORMED_REPLY, 4),
        ((DONE,), K.MALFORMED_REPLY, 4),
        ((*text(" \n"), DONE), K.MALFORMED_REPLY, 1),
        ((ModelDone(finish_reason="tool_calls", model="m", tool_calls=({"id": "c"},)),), K.UNSUPPORTED, 1),
        ((broken(K.RATE_LIMIT, PATIENCE_S + 1),), K.RATE_LIMIT, 1),
        ((broken(K.AUTH),), K.AUTH, 1),
        ((KeyError("odd"),), K.INTERNAL, 1),
    ],
)
async def test_what_is_not_an_answer_is_a_failure_of_its_kind(
    script: tuple[ModelChunk | Exception, ...], kind: FailureKind, calls: int
) -> None:
    model = ScriptedModel(script)
    assert (await Bench(model).failure()).kind == kind
    assert model.calls == calls


async def test_an_unexpected_exception_is_logged_with_its_traceback_and_no_text() -> None:
    lines: list[str] = []
    sink = logger.add(lambda line: lines.append(str(line)), diagnose=False, backtrace=False, format="{message}")
    try:
        failure = await Bench(ScriptedModel((KeyError("odd"),))).failure()
    finally:
        logger.remove(sink)
    assert "Traceback" in lines[0]
    assert "t1" in lines[0]
    assert "canary" not in "".join(lines)
    assert "KeyError" in failure.message


async def test_a_cancelled_turn_ends_and_makes_no_report() -> None:
    model = ScriptedModel((*text("a"), asyncio.Event(), DONE))
    bench = Bench(model)
    cancel = bench.start()
    await bench.until(lambda: bench.hub.texts() == ["a"])
    cancel()
    await bench.until(lambda: bench.runner.active == 0)
    assert (model.running, bench.reports) == (0, [])


async def test_a_cancellation_that_was_swallowed_still_makes_no_report() -> None:
    class Deaf(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                yield ModelText(text="too late")
                yield DONE

    bench = Bench(Deaf())
    cancel = bench.start()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    cancel()
    await bench.until(lambda: bench.runner.active == 0)
    assert bench.reports == []


async def test_a_turn_cancelled_before_its_first_step_makes_no_report() -> None:
    bench = Bench(ScriptedModel((*text("a"), DONE)))
    bench.start()()
    await bench.until(lambda: bench.runner.active == 0)
    assert bench.reports == []


async def test_only_so_many_calls_run_at_a_time_and_all_get_their_turn() -> None:
    model = ScriptedModel((*text("a", "b"), DONE))
    bench = Bench(model, max_concurrent=3)
    for number in range(20):
        bench.start(f"t{number}")
    assert bench.runner.active == 20
    await bench.until(lambda: bench.runner.active == 0)
    assert {report.text for report in bench.reports} == {"ab"}
    assert (len(bench.reports), model.most_running) == (20, 3)


async def test_a_turn_that_waits_to_try_again_lets_others_go_first() -> None:
    model = ScriptedModel((broken(K.OVERLOADED),), (*text("a"), DONE))
    wake = asyncio.Event()
    bench = Bench(model, max_concurrent=1, wake=wake)
    bench.start("first")
    bench.start("second")
    await bench.until(lambda: len(bench.reports) == 1)
    wake.set()
    await bench.until(lambda: bench.runner.active == 0)
    assert [report.turn for report in bench.reports] == ["second", "first"]


async def test_a_new_model_is_for_new_turns_and_the_old_one_closes_after_its_last() -> None:
    go = asyncio.Event()
    old, new = ScriptedModel((go, *text("old"), DONE), name="old"), ScriptedModel((*text("new"), DONE), name="new")
    bench = Bench(old)
    bench.start("t1")
    await bench.until(lambda: old.running == 1)
    bench.runner.set_model(new)
    bench.start("t2")
    await bench.until(lambda: len(bench.reports) == 1)
    assert not old.closed
    go.set()
    await bench.until(lambda: old.closed)
    assert [report.text for report in bench.reports] == ["new", "old"]
    await bench.runner.close()
    assert new.closed


async def test_closing_cancels_what_runs_and_nothing_starts_afterwards() -> None:
    model = ScriptedModel((asyncio.Event(),))
    bench = Bench(model, max_concurrent=2)
    for number in range(5):
        bench.start(f"t{number}")
    await bench.until(lambda: model.running == 2)
    await bench.runner.close()
    assert (bench.runner.active, model.running, model.closed) == (0, 0, True)
    bench.start("late")
    await bench.until(lambda: bench.runner.active == 0)
    assert (bench.reports, model.calls) == ([], 2)


async def test_a_report_that_is_not_taken_is_logged_and_hurts_nobody() -> None:
    lines: list[str] = []
    sink = logger.add(lambda line: lines.append(str(line)), diagnose=False, backtrace=False, format="{message}")
    bench = Bench(ScriptedModel((*text("a"), DONE)))

    def refuse(report: TurnReport) -> None:
        raise RuntimeError("gone")

    job = TurnJob(session=SessionId("s"), turn=TurnId("t"), attempt=0, messages=(), options=b"{}")
    bench.runner.start(job, refuse)
    try:
        await bench.until(lambda: bench.runner.active == 0)
    finally:
        logger.remove(sink)
    assert "was not taken" in lines[0]


async def test_against_a_real_endpoint_faults_are_survived_and_a_cancelled_call_is_hung_up() -> None:
    async with ModelServer() as server:
        bench = Bench(OpenAIModel(base_url=server.base_url, name="fake", api_key="sk-x"))
        server.script(error(429, retry_after="2"), page(502), answer("at last", finish=None), answer("at last"))
        report = await bench.run()
        assert (report.failure and report.failure.kind, len(server.requests)) == (K.MALFORMED_REPLY, 3)
        assert bench.slept[0] >= 2
        bench.reports.clear()
        assert (await bench.run("t2")).text == "at last"
        server.script(stream(delta(content="a"), STALL))
        cancel = bench.start("t3")
        await bench.until(lambda: bench.hub.texts("t3") == ["a"])
        cancel()
        async with asyncio.timeout(5):
            await server.until(lambda: server.left == 1)
        await bench.runner.close()


async def test_slots_can_be_resized_while_some_are_taken() -> None:
    slots = Slots(2)
    done = asyncio.Event()

    async def work() -> None:
        async with slots:
            await done.wait()

    tasks = [asyncio.create_task(work()) for _ in range(6)]
    for most, taken in ((2, 2), (4, 4), (1, 4)):
        slots.resize(most)
        for _ in range(5):
            await asyncio.sleep(0)
        assert slots.taken == taken
    tasks[-1].cancel()
    done.set()
    await asyncio.wait(tasks)
    assert slots.taken == 0
