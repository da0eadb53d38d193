from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from loguru import logger

from hermes.agent.models.chain import ModelChain, ModelReply, ReplyListener, Retry
from hermes.agent.models.circuit import OPENS_AFTER, CircuitBreaker
from hermes.agent.models.health import ModelHealth
from hermes.agent.models.retry import MAX_RETRY_AFTER_S
from hermes.agent.models.slots import Slots
from hermes.domain.errors import ModelError
from hermes.domain.ids import SessionId
from hermes.domain.turn.reasoning import Reasoning
from hermes.domain.turn.turn_failure import Failure, FailureCause, FailureKind
from hermes.ports.agent import Model, ModelChunk, ModelDone, ModelQueued, ModelReasoning, ModelRequest, ModelStarted
from tests.agent.harness import DONE, Script, ScriptedModel, broken, calls, says, text

K = FailureKind
REQUEST = ModelRequest(session=SessionId("s"), messages=(), model="chosen")


class Ear:
    def __init__(self) -> None:
        self.heard: list[str] = []
        self.slept: list[float] = []
        self.thoughts: list[str] = []

    async def ask(self, *chain: Model, first: int = 0) -> ModelReply | Failure:
        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)

        listener = ReplyListener(
            text=self.heard.append,
            reasoning=self.thoughts.append,
            reset=lambda: self.heard.append("(taken back)"),
            trouble=lambda said: self.heard.append(f"trouble: {said}"),
        )
        caller = ModelChain(slots=Slots(1), random=lambda: 0.5, sleep=sleep)
        return await caller.ask(chain, REQUEST, listener, first=first)


async def answered(ear: Ear, *chain: Model) -> ModelReply:
    reply = await ear.ask(*chain)
    assert isinstance(reply, ModelReply)
    return reply


async def failed(ear: Ear, *chain: Model) -> Failure:
    reply = await ear.ask(*chain)
    assert isinstance(reply, Failure)
    return reply


async def test_an_answer_is_heard_as_it_comes() -> None:
    ear = Ear()
    assert await answered(ear, ScriptedModel(says("Hello ", "there"))) == ModelReply(
        text="Hello there", done=DONE, place=0, reasoning=Reasoning(provider="test", model="chosen")
    )
    assert ear.heard == ["Hello ", "there"]


async def test_a_failure_is_tried_again_as_asked() -> None:
    ear = Ear()
    model = ScriptedModel((broken(K.RATE_LIMIT, 7.0),), (broken(K.CONNECTION),), says("ok"))
    assert (await answered(ear, model)).text == "ok"
    assert ear.slept == [7.75, 1.5]
    assert ear.heard == ["trouble: no; next try in 8 s", "trouble: no; next try in 2 s", "ok"]


async def test_four_tries_are_the_end() -> None:
    model = ScriptedModel((broken(K.OVERLOADED),))
    assert (await failed(Ear(), model)).kind == K.OVERLOADED
    assert model.calls == 4


async def test_what_was_said_of_an_answer_that_broke_off_is_taken_back() -> None:
    ear = Ear()
    model = ScriptedModel((*text("half an "), broken(K.CONNECTION)), says("whole"))
    assert (await answered(ear, model)).text == "whole"
    assert ear.heard[0:2] == ["half an ", "(taken back)"]
    assert ear.heard[-1] == "whole"


async def test_text_before_an_unopened_closing_tag_is_taken_back() -> None:
    ear = Ear()
    model = ScriptedModel(says("let me see\n", "</thi", "nk>\n\nThe answer"))
    assert (await answered(ear, model)).text == "The answer"
    assert ear.heard == ["let me see\n", "(taken back)", "The answer"]


@pytest.mark.parametrize(
    ("script", "kind", "tries"),
    [
        (text("half an "), K.MALFORMED_REPLY, 4),
        ((), K.MALFORMED_REPLY, 4),
        ((DONE,), K.MALFORMED_REPLY, 4),
        ((*text(" \n"), DONE), K.MALFORMED_REPLY, 4),
        ((broken(K.RATE_LIMIT, MAX_RETRY_AFTER_S + 1),), K.RATE_LIMIT, 1),
        ((broken(K.AUTH),), K.AUTH, 1),
        ((KeyError("odd"),), K.INTERNAL, 1),
    ],
)
async def test_what_is_not_an_answer_is_a_failure_of_its_kind(
    script: tuple[ModelChunk | Exception, ...], kind: FailureKind, tries: int
) -> None:
    model = ScriptedModel(script)
    assert (await failed(Ear(), model)).kind == kind
    assert model.calls == tries


async def test_tool_calls_without_a_word_are_an_answer() -> None:
    reply = await answered(Ear(), ScriptedModel(calls(("c1", "echo", {}))))
    assert reply.text == ""
    assert reply.done.tool_calls[0]["id"] == "c1"


async def test_the_next_model_is_asked_when_the_first_cannot() -> None:
    ear = Ear()
    first = ScriptedModel((*text("half"), broken(K.AUTH)), name="first")
    second = ScriptedModel(says("ok"), name="second")
    reply = await answered(ear, first, second)
    assert (reply.text, reply.place) == ("ok", 1)
    assert ear.heard == ["half", "(taken back)", "trouble: first failed (auth); asking second instead", "ok"]
    assert (first.requests[0].model, second.requests[0].model) == ("chosen", "")


@pytest.mark.parametrize("kind", [K.CONTEXT_OVERFLOW, K.POLICY, K.UNSUPPORTED])
async def test_what_another_model_cannot_help_is_final(kind: FailureKind) -> None:
    second = ScriptedModel(says("ok"))
    assert (await failed(Ear(), ScriptedModel((broken(kind),)), second)).kind == kind
    assert second.calls == 0


async def test_when_all_fail_the_first_failure_is_told_with_a_word_on_the_others() -> None:
    problem = await failed(
        Ear(), ScriptedModel((broken(K.BAD_REQUEST),), name="a"), ScriptedModel((broken(K.BILLING),), name="b")
    )
    assert problem.kind == K.BAD_REQUEST
    assert "b: billing" in problem.message
    assert (await failed(Ear())).kind == K.INTERNAL


async def test_a_turn_that_moved_on_begins_there_and_comes_back_for_want_of_others() -> None:
    first = ScriptedModel(says("first"))
    reply = await Ear().ask(first, ScriptedModel(says("second")), first=1)
    assert isinstance(reply, ModelReply)
    assert (reply.text, reply.place, first.calls) == ("second", 1, 0)
    reply = await Ear().ask(first, ScriptedModel((broken(K.AUTH),)), first=1)
    assert isinstance(reply, ModelReply)
    assert (reply.text, reply.place) == ("first", 0)


async def test_an_unexpected_exception_is_logged_with_its_traceback() -> None:
    lines: list[str] = []
    sink = logger.add(lambda line: lines.append(str(line)), diagnose=False, backtrace=False, format="{message}")
    try:
        failure = await failed(Ear(), ScriptedModel((KeyError("odd"),)))
    finally:
        logger.remove(sink)
    assert "Traceback" in lines[0]
    assert "KeyError" in failure.message


async def test_a_caller_that_waits_to_try_again_lets_others_go_first() -> None:
    wake = asyncio.Event()
    slots = Slots(1)

    async def sleep(_: float) -> None:
        await wake.wait()

    caller = ModelChain(slots=slots, random=lambda: 0.5, sleep=sleep)
    model = ScriptedModel((broken(K.OVERLOADED),), says("a"))
    first = asyncio.create_task(caller.ask((model,), REQUEST, ReplyListener()))
    second = asyncio.create_task(caller.ask((model,), REQUEST, ReplyListener()))
    async with asyncio.timeout(30):
        assert isinstance(await second, ModelReply)
        assert not first.done()
        wake.set()
        assert isinstance(await first, ModelReply)


async def test_a_cut_off_finish_is_not_taken_for_the_whole() -> None:
    model = ScriptedModel((*text("a"), ModelDone(finish_reason="length", model="m")))
    assert (await answered(Ear(), model)).done.finish_reason == "length"


async def test_reasoning_is_neither_heard_nor_kept() -> None:
    ear = Ear()
    reply = await answered(ear, ScriptedModel(says("<th", "ink>let me", " see</thi", "nk>\n\nvisible ", "answer")))
    assert reply.text == "visible answer"
    assert "".join(ear.heard) == "visible answer"


async def test_an_answer_of_nothing_but_reasoning_is_none() -> None:
    ear = Ear()
    model = ScriptedModel(*[says("<think>let me see")] * 9)
    problem = await failed(ear, model)
    assert problem.kind is K.MALFORMED_REPLY
    assert "let me see" not in "".join(ear.heard)


async def test_each_retry_and_model_change_is_reported() -> None:
    retries: list[Retry] = []

    async def sleep(seconds: float) -> None:
        """It takes no time here."""

    caller = ModelChain(slots=Slots(1), random=lambda: 0.5, sleep=sleep)
    first = ScriptedModel((broken(K.RATE_LIMIT),), (broken(K.AUTH),))
    reply = await caller.ask((first, ScriptedModel(says("ok"))), REQUEST, ReplyListener(retried=retries.append))
    assert isinstance(reply, ModelReply)
    assert [(each.failure.kind, each.tries, each.delay_s > 0) for each in retries] == [
        (K.RATE_LIMIT, 1, True),
        (K.AUTH, 2, False),
    ]


async def test_health_knows_the_last_answer_and_the_last_failure() -> None:
    now = 100.0
    health = ModelHealth(clock=lambda: now)

    async def sleep(seconds: float) -> None:
        """It takes no time here."""

    caller = ModelChain(slots=Slots(1), random=lambda: 0.5, sleep=sleep, health=health)
    assert health.facts() == {"answered_at": None, "last_failure": None}
    where = replace(broken(K.AUTH).failure, address="http://h/v1", cause=FailureCause.STATUS, status=401)
    await caller.ask((ScriptedModel((ModelError(where),)),), REQUEST, ReplyListener())
    failure = health.facts()["last_failure"]
    assert (failure["at"], failure["code"], failure["status"]) == (100.0, "auth", 401)
    assert (failure["address"], failure["cause"]) == ("http://h/v1", "status")
    assert health.facts()["answered_at"] is None
    now = 200.0
    await caller.ask((ScriptedModel(says("ok")),), REQUEST, ReplyListener())
    assert health.facts()["answered_at"] == 200.0


async def someone_waits(caller: ModelChain) -> None:
    while True:
        if caller.waiting:
            return
        await asyncio.sleep(0)


async def test_time_spent_waiting_for_others_is_measured_apart() -> None:
    caller = ModelChain(slots=Slots(1), random=lambda: 0.5, sleep=asyncio.sleep)
    go, wait = asyncio.Event(), asyncio.Event()
    first = asyncio.create_task(caller.ask((ScriptedModel((go, *says("a"))),), REQUEST, ReplyListener()))
    await asyncio.sleep(0)
    second = asyncio.create_task(caller.ask((ScriptedModel(says("b")),), REQUEST, ReplyListener()))
    async with asyncio.timeout(5):
        await someone_waits(caller)
        go.set()
        one, two = await first, await second
    assert isinstance(one, ModelReply)
    assert isinstance(two, ModelReply)
    assert one.waited_s == 0.0 < two.waited_s
    assert caller.waiting == 0

    heard: list[str] = []
    queued = (ModelQueued(ahead=2), wait, ModelStarted(), *says("c"))
    third = asyncio.create_task(caller.ask((ScriptedModel(queued),), REQUEST, ReplyListener(trouble=heard.append)))
    async with asyncio.timeout(5):
        await someone_waits(caller)
        wait.set()
        three = await third
    assert isinstance(three, ModelReply)
    assert three.waited_s > 0
    assert "2 calls are before this one" in heard[0]
    assert caller.waiting == 0


async def test_reasoning_is_heard_apart_from_the_answer() -> None:
    ear = Ear()
    script: Script = (
        ModelReasoning(text="hm "),
        *text("<think>still", " thinking</think>", "Hello"),
        replace(DONE, reasoning=({"type": "x"},)),
    )
    reply = await answered(ear, ScriptedModel(script))
    assert reply.text == "Hello"
    assert reply.reasoning == Reasoning(
        text="hm still thinking", provider="test", model="chosen", items=({"type": "x"},)
    )
    assert "".join(ear.thoughts) == "hm still thinking"


async def test_reasoning_that_a_template_opened_is_taken_back_and_kept() -> None:
    ear = Ear()
    reply = await answered(ear, ScriptedModel((*text("I think", "\n</think>\n", "Hello"), DONE)))
    assert (reply.text, reply.reasoning.text) == ("Hello", "I think")


class Outage:
    """A caller whose clock moves with its sleeps."""

    def __init__(self, patience_s: float = 300.0) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.notices: list[str] = []
        self.retries: list[Retry] = []
        self.chain = ModelChain(slots=Slots(8), random=lambda: 0.5, sleep=self.sleep, clock=lambda: self.now)
        self.chain.patience_s = patience_s

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    async def ask(self, *models: Model) -> ModelReply | Failure:
        listener = ReplyListener(trouble=self.notices.append, retried=self.retries.append)
        return await self.chain.ask(models, REQUEST, listener)


async def test_an_outage_of_minutes_is_waited_out_with_a_notice() -> None:
    here = Outage()
    model = ScriptedModel(*[(broken(K.CONNECTION),)] * 12, says("back"))
    reply = await here.ask(model)
    assert isinstance(reply, ModelReply)
    assert 60 < here.now < 300
    assert max(here.slept) <= 60
    assert sum(notice.startswith("still trying") for notice in here.notices) == len(here.retries) - 3


@pytest.mark.parametrize("kind", [K.CONNECTION, K.OVERLOADED, K.TIMEOUT, K.RATE_LIMIT])
async def test_patience_ends(kind: FailureKind) -> None:
    here = Outage(patience_s=120)
    failure = await here.ask(ScriptedModel((broken(kind),)))
    assert isinstance(failure, Failure)
    assert failure.kind is kind
    assert 60 < here.now <= 120


@pytest.mark.parametrize("kind", [K.AUTH, K.BILLING, K.BAD_REQUEST, K.MALFORMED_REPLY, K.CONTEXT_OVERFLOW])
async def test_only_an_outage_is_waited_out(kind: FailureKind) -> None:
    here = Outage()
    assert isinstance(await here.ask(ScriptedModel((broken(kind),))), Failure)
    assert here.now < 10


async def test_a_long_wait_that_the_endpoint_asks_for_is_honoured_within_the_patience() -> None:
    here = Outage()
    reply = await here.ask(ScriptedModel((broken(K.RATE_LIMIT, 100.0),), says("now")))
    assert isinstance(reply, ModelReply)
    assert here.now >= 100
    late = Outage()
    assert isinstance(await late.ask(ScriptedModel((broken(K.RATE_LIMIT, 1000.0),), says("now"))), Failure)
    assert late.now == 0


async def test_after_a_round_only_models_with_an_outage_are_asked_again() -> None:
    here = Outage()
    refused = ScriptedModel((broken(K.AUTH),), name="refused")
    down = ScriptedModel(*[(broken(K.OVERLOADED),)] * 5, says("back"), name="down")
    reply = await here.ask(refused, down)
    assert isinstance(reply, ModelReply)
    assert (refused.calls, down.calls, reply.place) == (1, 6, 1)


async def test_an_endpoint_that_fails_again_and_again_is_left_alone_by_everyone() -> None:
    here = Outage(patience_s=1)  # too short to wait
    down = ScriptedModel((broken(K.CONNECTION),), name="down")
    await here.ask(down)
    await here.ask(down)
    assert down.calls == OPENS_AFTER
    failure = await here.ask(down)
    assert isinstance(failure, Failure)
    assert (failure.kind, down.calls) == (K.CONNECTION, OPENS_AFTER)
    assert here.chain.circuits.open_endpoints() == [down.endpoint]
    other = ScriptedModel(says("still here"), name="other")
    other.endpoint = "http://other"
    assert isinstance(await here.ask(down, other), ModelReply)
    here.now += 60
    up = ScriptedModel(says("up"))
    assert isinstance(await here.ask(up), ModelReply)
    assert here.chain.circuits.open_endpoints() == []


def test_one_call_probes_an_endpoint_after_its_pause() -> None:
    now = [0.0]
    circuits = CircuitBreaker(clock=lambda: now[0])
    for _ in range(OPENS_AFTER):
        assert circuits.wait_s("e") == 0
        circuits.failed("e", broken(K.TIMEOUT).failure)
    assert circuits.wait_s("e") > 0
    now[0] = 60
    assert circuits.wait_s("e") == 0
    assert circuits.wait_s("e") > 0  # another call waits for the result
    circuits.failed("e", broken(K.BAD_REQUEST).failure)  # an answer, though not a good one
    assert circuits.wait_s("e") == 0
