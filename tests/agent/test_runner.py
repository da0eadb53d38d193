from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from loguru import logger

from hermes.agent.models.model_set import ModelSet
from hermes.domain.ids import SessionId
from hermes.domain.session.jobs import ModelReport, RetryReport, SummaryJob, SummaryReport, ToolReport
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.tool_call import CallOutcome
from hermes.domain.turn.turn_failure import FailureKind
from hermes.ports.agent import ModelChunk, ModelRequest, ModelText
from tests.agent.harness import (
    DONE,
    AgentBench,
    ScriptedModel,
    broken,
    chat_model,
    model_job,
    says,
    text,
    tool_job,
    user,
)
from tests.support.model_server import STALL, ModelServer, answer, delta, error, page, stream

K = FailureKind


async def test_an_answer_is_published_as_it_comes_and_reported_once(tmp_path: Path) -> None:
    bench = AgentBench(tmp_path, ScriptedModel(says("Hello ", "there")))
    report = await bench.run()
    assert (report.turn, report.attempt, report.text, report.usage) == ("t1", 2, "Hello there", DONE.usage)
    assert bench.hub.texts() == ["Hello ", "there"]


async def test_a_cancelled_answer_ends_and_makes_no_report(tmp_path: Path) -> None:
    model = ScriptedModel((*text("a"), asyncio.Event(), DONE))
    bench = AgentBench(tmp_path, model)
    cancel = bench.start()
    await bench.until(lambda: bench.hub.texts() == ["a"])
    cancel()
    await bench.until(lambda: bench.runner.active == 0)
    assert (model.running, bench.reports) == (0, [])


async def test_a_cancellation_that_was_swallowed_still_makes_no_report(tmp_path: Path) -> None:
    class Deaf(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
            self.running = 1
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                yield ModelText(text="too late")
                yield DONE

    model = Deaf()
    bench = AgentBench(tmp_path, model)
    cancel = bench.start()
    await bench.until(lambda: model.running == 1)
    cancel()
    await bench.until(lambda: bench.runner.active == 0)
    assert bench.reports == []


async def test_work_cancelled_before_its_first_step_makes_no_report(tmp_path: Path) -> None:
    bench = AgentBench(tmp_path, ScriptedModel(says("a")))
    bench.start()()
    bench.runner.act(tool_job("echo", {"words": "a"}), bench.reports.append).cancel()
    await bench.until(lambda: bench.runner.active == 0)
    assert bench.reports == []


async def test_concurrent_calls_are_limited_and_all_run(tmp_path: Path) -> None:
    model = ScriptedModel(says("a", "b"))
    bench = AgentBench(tmp_path, model, max_concurrent=3)
    for number in range(20):
        bench.start(f"t{number}")
    assert bench.runner.active == 20
    assert bench.runner.busy == ["s"]
    await bench.until(lambda: bench.runner.active == 0)
    assert {report.text for report in bench.reports} == {"ab"}
    assert len(bench.reports) == 20
    assert model.most_running <= 3


async def test_a_new_model_is_for_new_work_and_the_old_one_closes_after_its_last(tmp_path: Path) -> None:
    go = asyncio.Event()
    old, new = ScriptedModel((go, *says("old")), name="old"), ScriptedModel(says("new"), name="new")
    bench = AgentBench(tmp_path, old)
    bench.start("t1")
    await bench.until(lambda: old.running == 1)
    bench.runner.set_models(ModelSet((new,)))
    bench.start("t2")
    await bench.until(lambda: len(bench.reports) == 1)
    assert not old.closed
    go.set()
    await bench.until(lambda: old.closed)
    assert [report.text for report in bench.reports] == ["new", "old"]
    await bench.runner.close()
    assert new.closed


async def test_closing_cancels_what_runs_and_nothing_starts_afterwards(tmp_path: Path) -> None:
    model = ScriptedModel((asyncio.Event(),))
    bench = AgentBench(tmp_path, model, max_concurrent=2)
    for number in range(5):
        bench.start(f"t{number}")
    bench.runner.act(tool_job("sleep", {}), bench.reports.append)
    await bench.until(lambda: bench.runner.counts() == {"in_flight": 6, "calling": 2, "waiting": 3})
    await bench.until(lambda: model.running == 2)
    await bench.runner.close()
    assert (bench.runner.active, model.running, model.closed) == (0, 0, True)
    bench.start("late")
    await bench.runner.until_idle()
    assert (bench.reports, model.calls) == ([], 2)


async def test_refused_report_is_logged_and_harmless(tmp_path: Path) -> None:
    lines: list[str] = []
    sink = logger.add(lambda line: lines.append(str(line)), diagnose=False, backtrace=False, format="{message}")
    bench = AgentBench(tmp_path, ScriptedModel(says("a")))

    def refuse(report: ModelReport | RetryReport) -> None:
        raise RuntimeError("gone")

    bench.runner.think(model_job(), refuse)
    try:
        await bench.until(lambda: bench.runner.active == 0)
    finally:
        logger.remove(sink)
    assert "could not deliver the report" in lines[0]
    assert "canary" not in "".join(lines)


async def test_a_tool_call_is_reported_and_one_that_is_cancelled_is_not(tmp_path: Path) -> None:
    bench = AgentBench(tmp_path)
    bench.runner.act(tool_job("echo", {"words": "a"}), bench.reports.append)
    asleep = bench.runner.act(tool_job("sleep", {}, "c2"), bench.reports.append)
    await bench.until(lambda: len(bench.reports) == 1)
    asleep.cancel()
    await bench.runner.until_idle()
    [report] = bench.reports
    assert isinstance(report, ToolReport)
    assert (report.call, report.outcome) == ("c1", CallOutcome.OK)


async def test_work_that_breaks_on_our_side_is_reported_all_the_same(tmp_path: Path) -> None:
    nowhere = tmp_path / "a file"
    nowhere.write_text("where a folder should be")
    bench = AgentBench(nowhere, ScriptedModel(says("a")))
    bench.runner.think(model_job(messages=None), bench.reports.append)  # which no session would ask for
    bench.runner.act(tool_job("echo", {"words": "a"}), bench.reports.append)
    await bench.runner.until_idle()
    thought = next(report for report in bench.reports if isinstance(report, ModelReport))
    acted = next(report for report in bench.reports if isinstance(report, ToolReport))
    assert thought.failure is not None
    assert thought.failure.kind == K.INTERNAL
    assert acted.outcome == CallOutcome.ERROR
    assert "failed unexpectedly" in json.loads(acted.message)["content"]


async def test_a_long_conversation_is_shortened_to_a_summary_and_its_end(tmp_path: Path) -> None:
    model = ScriptedModel(says("They talked about foxes."))
    bench = AgentBench(tmp_path, model)
    assistant = EncodedMessage(json.dumps({"role": "assistant", "content": "the quick brown fox " * 60}).encode())
    messages = tuple(each for n in range(20) for each in (user(f"{n} " + "jumps over " * 100), assistant))
    job = SummaryJob(session=SessionId("s"), root=SessionId("s"), messages=messages, focus="foxes")
    bench.runner.summarise(job, bench.reports.append)
    await bench.runner.until_idle()
    [report] = bench.reports
    assert isinstance(report, SummaryReport)
    assert report.problem == ""
    assert any(b"They talked about foxes." in bytes(message) for message in report.messages)
    assert len(report.messages) < len(messages)
    assert report.messages[-1] == messages[-1]
    assert b"foxes" in bytes(model.requests[0].messages[-1])


async def test_a_summary_that_fails_or_gains_nothing_says_so(tmp_path: Path) -> None:
    bench = AgentBench(tmp_path, ScriptedModel((broken(K.AUTH),)))
    job = SummaryJob(session=SessionId("s"), root=SessionId("s"), messages=(user("a"),))
    bench.runner.summarise(job, bench.reports.append)
    await bench.runner.until_idle()
    long = tuple(user(f"{n} " + "jumps over " * 200) for n in range(40))
    bench.runner.summarise(
        SummaryJob(session=SessionId("s"), root=SessionId("s"), messages=long), bench.reports.append
    )
    await bench.runner.until_idle()
    assert "too little to save" in bench.reports[0].problem
    assert "the summary failed" in bench.reports[1].problem


async def test_a_summary_that_trickles_is_ended_by_its_time_limit(tmp_path: Path) -> None:
    never = asyncio.Event()
    bench = AgentBench(tmp_path, ScriptedModel((ModelText(text="a"), never)))
    bench.summarising.settings = replace(bench.summarising.settings, timeout_s=0.05)
    long = tuple(user(f"{n} " + "jumps over " * 200) for n in range(40))
    job = SummaryJob(session=SessionId("s"), root=SessionId("s"), messages=long)
    bench.runner.summarise(job, bench.reports.append)
    async with asyncio.timeout(10):
        await bench.runner.until_idle()
    assert "longer than 0.05 s" in bench.reports[0].problem


async def test_against_a_real_endpoint_faults_are_survived_and_a_cancelled_call_is_hung_up(tmp_path: Path) -> None:
    async with ModelServer() as server:
        bench = AgentBench(tmp_path, chat_model(server.base_url, key="sk-x"))
        server.script(error(429, retry_after="2"), page(502), answer("at last", finish=None), answer("at last"))
        report = await bench.run()
        assert (report.text, len(server.requests)) == ("at last", 4)
        assert bench.slept[0] >= 2
        assert "(taken back)" in bench.hub.texts()
        server.script(stream(delta(content="a"), STALL))
        cancel = bench.start("t3")
        await bench.until(lambda: bench.hub.texts("t3") == ["a"])
        cancel()
        await server.until(lambda: server.left == 1)
        await bench.runner.close()
