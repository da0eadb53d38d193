from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from hermes.agent.accounting import Budget
from hermes.agent.image_policy import ImagePolicy
from hermes.agent.model_step import not_thought
from hermes.domain.errors import ConfigError
from hermes.domain.ids import TurnId
from hermes.domain.media.reference import user_message
from hermes.domain.session.jobs import ModelReport
from hermes.domain.session.state import Preferences
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.tool_call import Effect, Verdict
from hermes.domain.turn.turn_failure import FailureKind
from hermes.domain.turn.usage import Price, Usage
from hermes.ports.agent import ModelDone
from tests.agent.harness import (
    DONE,
    AgentBench,
    Script,
    ScriptedModel,
    broken,
    calls,
    model_job,
    says,
    text,
    thinking_settings,
    user,
)

K = FailureKind
SETTINGS = thinking_settings()


async def test_an_answer_and_all_that_the_session_keeps_of_it(tmp_path: Path) -> None:
    model = ScriptedModel(says("Hello ", "there"))
    bench = AgentBench(tmp_path, model)
    prompt = EncodedMessage(b'{"role":"system","content":"be kind to s in s"}')
    assert await bench.think() == ModelReport(
        turn=TurnId("t1"),
        attempt=2,
        replies=0,
        message=EncodedMessage(b'{"role":"assistant","content":"Hello there"}'),
        text="Hello there",
        model="m",
        finish_reason="stop",
        usage=DONE.usage,
        prompt=prompt,
        context_tokens=3,
    )
    assert list(model.requests[0].messages) == [prompt, user("canary text")]
    assert {each["function"]["name"] for each in json.loads(model.requests[0].tools)} >= {"echo", "shout"}
    assert bench.hub.texts() == ["Hello ", "there"]


async def test_a_prompt_that_is_there_is_sent_as_it_is(tmp_path: Path) -> None:
    model = ScriptedModel(says("a"))
    prompt = EncodedMessage(b'{"role":"system","content":"x"}')
    report = await AgentBench(tmp_path, model).think(prompt=prompt)
    assert report.prompt is None
    assert model.requests[0].messages[0] == prompt


async def test_a_persons_preferences_go_with_the_request(tmp_path: Path) -> None:
    model = ScriptedModel(says("a"))
    await AgentBench(tmp_path, model).think(
        preferences=Preferences(model="m2", reasoning="high"), options=b'{"temperature":0}'
    )
    [request] = model.requests
    assert (request.model, request.reasoning, request.options) == ("m2", "high", b'{"temperature":0}')


async def test_instructions_of_a_turn_are_part_of_its_system_message(tmp_path: Path) -> None:
    model = ScriptedModel(says("a"))
    prompt = EncodedMessage(b'{"role":"system","content":"x"}')
    instructions = EncodedMessage(b'{"role":"system","content":"Be brief."}')
    report = await AgentBench(tmp_path, model).think(prompt=prompt, instructions=instructions)
    assert report.prompt is None
    assert json.loads(model.requests[0].messages[0]) == {"role": "system", "content": "x\n\nBe brief."}


async def test_each_model_of_the_chain_is_shown_pictures_only_if_it_sees(tmp_path: Path) -> None:
    name = f"{1:064x}.jpg"
    (tmp_path / name).write_bytes(b"\xff\xd8\xff picture")
    seeing = ScriptedModel((broken(K.AUTH),), name="gpt-4o")
    blind = ScriptedModel((broken(K.AUTH),), name="deepseek-chat")
    third = ScriptedModel(says("a cat"), name="llava")
    await AgentBench(tmp_path, seeing, blind, third, sight=ImagePolicy(tmp_path)).think(
        messages=(user_message("look", [name]),)
    )
    contents = [json.loads(model.requests[0].messages[-1])["content"] for model in (seeing, blind, third)]
    assert contents[1] == "look"
    assert [type(each) for each in contents] == [list, str, list]


async def test_a_request_that_is_refused_with_pictures_is_sent_again_without_them(tmp_path: Path) -> None:
    name = f"{1:064x}.jpg"
    (tmp_path / name).write_bytes(b"\xff\xd8\xff picture")
    model = ScriptedModel((broken(K.BAD_REQUEST),), says("no cat"), name="gpt-4o")
    bench = AgentBench(tmp_path, model, sight=ImagePolicy(tmp_path))
    report = await bench.think(messages=(user_message("look", [name]),))
    assert report.failure is None
    contents = [json.loads(request.messages[-1])["content"] for request in model.requests]
    assert [type(each) for each in contents] == [list, str]


async def test_a_refused_picture_is_not_sent_again(tmp_path: Path) -> None:
    names = [f"{number:064x}.jpg" for number in range(4)]
    for name in names:
        (tmp_path / name).write_bytes(b"\xff\xd8\xff picture")
    refused, accepted = (broken(K.BAD_REQUEST),), says("yes")
    model = ScriptedModel(*(refused, accepted), accepted, *(refused, accepted), accepted, accepted, name="gpt-4o")
    bench = AgentBench(tmp_path, model, sight=ImagePolicy(tmp_path))
    for name in (names[0], names[0], names[1], names[1], names[2]):
        assert (await bench.think(messages=(user_message("look", [name]),))).failure is None
    contents = [json.loads(request.messages[-1])["content"] for request in model.requests]
    assert [type(each) for each in contents] == [list, str, str, list, str, str, str]  # the last one: it is blind


async def test_a_model_that_accepts_pictures_is_not_blind_after_refusals(tmp_path: Path) -> None:
    names = [f"{number:064x}.jpg" for number in range(4)]
    for name in names:
        (tmp_path / name).write_bytes(b"\xff\xd8\xff picture")
    refused, accepted = (broken(K.BAD_REQUEST),), says("yes")
    model = ScriptedModel(accepted, *(refused, accepted) * 2, accepted, name="gpt-4o")
    bench = AgentBench(tmp_path, model, sight=ImagePolicy(tmp_path))
    for name in names:
        await bench.think(messages=(user_message("look", [name]),))
    contents = [json.loads(request.messages[-1])["content"] for request in model.requests]
    assert [type(each) for each in contents] == [list, list, str, list, str, list]


async def test_a_fallback_that_a_person_chose_is_asked_itself_and_the_others_after_it(tmp_path: Path) -> None:
    first, second = ScriptedModel(says("a"), name="one"), ScriptedModel((broken(K.AUTH),), name="two")
    report = await AgentBench(tmp_path, first, second).think(preferences=Preferences(model="two"))
    assert report.text == "a"
    assert (second.calls, [each.model for each in (*second.requests, *first.requests)]) == (1, ["", ""])


async def test_tool_calls_are_proposed_each_with_what_the_session_must_know(tmp_path: Path) -> None:
    script = calls(
        ("c1", "echo", {"words": "a b"}),
        ("c2", "shout", {"words": "x"}),
        ("c3", "ech", {}),
        ("c4", "echo", {"word": 1}),
        ("c5", "clarify", {"question": "which?", "choices": ["red", "blue"]}),
    )
    report = await AgentBench(tmp_path, ScriptedModel((*text("let me see"), *script))).think()
    echo, shout, unknown, wrong, question = report.calls
    assert (echo.effect, echo.parallel, echo.gate.verdict) == (Effect.PURE, True, Verdict.ALLOW)
    assert echo.summary == 'echo: {"words": "a b"}'
    assert (shout.effect, shout.gate.verdict, shout.gate.rules) == (Effect.EFFECT, Verdict.ASK, ("shout",))
    assert "Did you mean echo?" in unknown.problem
    assert "was not run" in wrong.problem
    assert (question.question, question.choices) == ("which?", ("red", "blue"))
    message = json.loads(report.message)
    assert message["content"] == "let me see"
    assert [call["id"] for call in message["tool_calls"]] == ["c1", "c2", "c3", "c4", "c5"]


async def test_ids_that_repeat_or_cannot_be_used_are_replaced_in_message_and_call_alike(tmp_path: Path) -> None:
    script = calls(("x", "echo", {"words": "1"}), ("x", "echo", {"words": "2"}), ("", "echo", {"words": "3"}))
    report = await AgentBench(tmp_path, ScriptedModel(script)).think()
    ids = [call.id for call in report.calls]
    assert ids == ["x", "call_t1_0_1", "call_t1_0_2"]
    assert [call["id"] for call in json.loads(report.message)["tool_calls"]] == ids


async def test_the_last_word_is_asked_for_without_tools_and_calls_in_it_are_not_run(tmp_path: Path) -> None:
    model = ScriptedModel(calls(("c1", "echo", {"words": "a"})))
    report = await AgentBench(tmp_path, model).think(last=True, replies=5)
    assert report.calls == ()
    assert report.finish_reason == "length"
    assert "Stopped after 5 steps" in report.text
    [request] = model.requests
    assert request.tools == b""
    assert "limit of 5 steps" in request.messages[-1].decode()
    assert "tool_calls" not in json.loads(report.message)


async def test_a_failure_is_reported_with_its_kind(tmp_path: Path) -> None:
    report = await AgentBench(tmp_path, ScriptedModel((broken(K.AUTH),))).think()
    assert report.failure is not None
    assert (report.failure.kind, report.turn, report.attempt) == (K.AUTH, "t1", 2)


async def test_what_is_too_long_for_the_model_is_not_sent(tmp_path: Path) -> None:
    model = ScriptedModel(says("a"))
    report = await AgentBench(tmp_path, model).think(messages=(user("words " * 10_000),))
    assert report.failure is not None
    assert (report.failure.kind, model.calls) == (K.CONTEXT_OVERFLOW, 0)

    unbounded = AgentBench(tmp_path, model, settings=replace(SETTINGS, compress=False))
    assert (await unbounded.think(messages=(user("words " * 10_000),))).text == "a"


async def test_an_image_is_large_and_fits_all_the_same(tmp_path: Path) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 200_000}}
    message = EncodedMessage(json.dumps({"role": "user", "content": [picture]}).encode())
    assert (await AgentBench(tmp_path, ScriptedModel(says("a cat"))).think(messages=(message,))).text == "a cat"


async def test_an_answer_that_nearly_fills_the_window_says_so(tmp_path: Path) -> None:
    usage = Usage(prompt_tokens=6000, completion_tokens=100)
    script: Script = (*text("a"), ModelDone(finish_reason="stop", model="m", usage=usage))
    report = await AgentBench(tmp_path, ScriptedModel(script)).think()
    assert (report.context_full, report.context_tokens) == (True, 6100)
    never = AgentBench(tmp_path, ScriptedModel(script), settings=replace(SETTINGS, compress=False))
    assert not (await never.think()).context_full


async def test_an_endpoint_that_counts_nothing_is_estimated(tmp_path: Path) -> None:
    script: Script = (*text("a"), ModelDone(finish_reason="stop", model="m"))
    report = await AgentBench(tmp_path, ScriptedModel(script)).think(messages=(user("word " * 4000),))
    assert report.context_tokens > 4000


async def test_a_call_has_its_price_unless_the_provider_said_what_it_cost(tmp_path: Path) -> None:
    price = Price(input=2.0, cached_input=1.0, output=10.0)
    settings = thinking_settings(price=price)
    usage = Usage(prompt_tokens=1_000_000, completion_tokens=100_000, cached_tokens=500_000)
    script: Script = (*text("a"), ModelDone(finish_reason="stop", model="m", usage=usage))
    report = await AgentBench(tmp_path, ScriptedModel(script), settings=settings).think()
    assert report.usage.cost_usd == 0.5 * 2 + 0.5 * 1 + 1.0

    said: Script = (*text("a"), ModelDone(finish_reason="stop", model="m", usage=replace(usage, cost_usd=0.1)))
    assert (await AgentBench(tmp_path, ScriptedModel(said), settings=settings).think()).usage.cost_usd == 0.1


async def test_a_budget_that_is_spent_asks_no_model(tmp_path: Path) -> None:
    model = ScriptedModel(says("a"))
    bench = AgentBench(tmp_path, model, budget=Budget(day_tokens=3))
    assert (await bench.think()).failure is None
    report = await bench.think()
    assert report.failure is not None
    assert (report.failure.kind, model.calls) == (K.BUDGET, 1)
    session = AgentBench(tmp_path, model, budget=Budget(session_tokens=10))
    spent = await session.think(spent=Usage(prompt_tokens=10))
    assert spent.failure is not None
    assert "session" in spent.failure.message


def test_what_is_wrong_with_the_configuration_is_said_and_not_left_to_the_log() -> None:
    report = not_thought(model_job(), ConfigError("tools.cli: there is no tool 'termnal'"))
    assert report.failure is not None
    assert report.failure.message == "tools.cli: there is no tool 'termnal'"
