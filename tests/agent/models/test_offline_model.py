from __future__ import annotations

import asyncio
import json
import time

import pytest

from hermes.agent.models.offline_model import OfflineModel
from hermes.domain.errors import ModelError
from hermes.domain.ids import SessionId
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.turn_failure import FailureKind
from hermes.ports.agent import ModelChunk, ModelDone, ModelRequest, ModelText


def encode(role: str, content: object) -> EncodedMessage:
    return EncodedMessage(json.dumps({"role": role, "content": content}).encode())


async def ask(*messages: EncodedMessage, model: OfflineModel | None = None) -> list[ModelChunk]:
    request = ModelRequest(session=SessionId("s"), messages=messages)
    return [chunk async for chunk in (model or OfflineModel()).stream(request)]


async def say(*said: str) -> str:
    chunks = await ask(*(encode("user", text) for text in said))
    assert isinstance(chunks[-1], ModelDone)
    assert chunks[-1].finish_reason == "stop"
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, ModelText))


async def test_it_says_what_it_is_and_how_to_get_a_real_one() -> None:
    answer = await say("Good morning", "How are you?")
    for part in (
        "not an AI",
        "offline model",
        "`hermes setup`",
        '"How are you?"',
        '"Good morning"',
        "2 messages",
    ):
        assert part in answer
    assert answer == await say("Good morning", "How are you?")


async def test_a_long_message_is_quoted_in_part() -> None:
    assert len(await say("word " * 10_000)) < 1000


async def test_help_names_every_directive() -> None:
    answer = await say("!directives")
    assert answer == await say("!help")  # which Slack has taken for Hermes's own list
    assert "!help lists" in await say("hello")
    for directive in ("!help", "!echo", "!slow", "!long", "!fail", "!cut", "!hang", "!tool", "!history", "!count"):
        assert directive in answer


@pytest.mark.parametrize("text", ["one", "two  words", "  spaced\n\nlines\tof 😀 text", "!help"])
async def test_echo_is_exact(text: str) -> None:
    assert await say(f"!echo {text}") == text.rstrip()


async def test_echo_of_nothing_is_an_empty_answer() -> None:
    assert await say("!echo") == ""


async def test_history_shows_every_message_in_order() -> None:
    messages = [
        encode("system", "Be kind."),
        encode("user", "a\nb"),
        encode("assistant", "c"),
        encode("user", "!history"),
    ]
    chunks = await ask(*messages)
    text = "".join(chunk.text for chunk in chunks if isinstance(chunk, ModelText))
    assert text.splitlines() == ["1. user: a\\nb", "2. assistant: c", "3. user: !history"], "without the prompt"


async def test_count_says_how_many_messages_there_are() -> None:
    assert await say("a", "b", "!count") == "I was shown 3 messages."
    assert await say("!count") == "I was shown 1 message."
    assert "has 1 message and" in await say("Good morning")


async def test_long_is_as_long_as_asked_within_reason() -> None:
    assert len((await say("!long 250")).split()) == 250
    assert len((await say("!long 99999999999")).split()) == 100_000
    assert len((await say("!long x")).split()) == 100


@pytest.mark.parametrize("text", ["w " * 500_000, "w" * 1_000_000, "a\n" * 500_000, "!echo " + " w" * 500_000])
async def test_no_step_of_a_large_answer_takes_long(text: str) -> None:
    request = ModelRequest(session=SessionId("s"), messages=(encode("user", text),))
    # Of three: what else this process has to do, such as to collect garbage, takes its time in any step.
    assert min([await slowest_step(request) for _ in range(3)]) < 0.1


async def slowest_step(request: ModelRequest) -> float:
    slowest = 0.0
    began = time.process_time()
    async for _ in OfflineModel().stream(request):
        slowest = max(slowest, time.process_time() - began)
        began = time.process_time()
    return slowest


async def test_slow_reads_the_first_word_as_seconds() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    await ask(encode("user", "!slow 8 hello"), model=OfflineModel(sleep=sleep))
    assert sum(slept) == pytest.approx(8)


async def test_slow_takes_its_time_between_words() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    await ask(encode("user", "!slow 3"), model=OfflineModel(sleep=sleep))
    assert len(slept) > 5
    assert sum(slept) == pytest.approx(3)


@pytest.mark.parametrize("kind", list(FailureKind))
async def test_it_fails_as_told(kind: FailureKind) -> None:
    with pytest.raises(ModelError) as caught:
        await ask(encode("user", f"!fail {kind}"))
    assert caught.value.failure.kind == kind


async def test_an_unknown_failure_or_directive_is_explained() -> None:
    assert "rate_limit" in await say("!fail badly")
    assert "!help" in await say("!dance")


async def test_cut_ends_without_an_end() -> None:
    assert all(isinstance(chunk, ModelText) for chunk in await ask(encode("user", "!cut")))


async def test_tool_asks_for_a_tool() -> None:
    (done,) = await ask(encode("user", '!tool look {"at": 1}'))
    assert isinstance(done, ModelDone)
    assert done.finish_reason == "tool_calls"
    assert done.tool_calls[0]["function"] == {"name": "look", "arguments": '{"at": 1}'}


async def test_hang_lasts_until_it_is_cancelled() -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(ask(encode("user", "!hang")), 0.05)


async def test_four_bytes_of_all_that_it_is_shown_are_a_token() -> None:
    shown = [encode("user", "one"), encode("assistant", "two"), encode("user", "!echo one two three")]
    done = (await ask(*shown))[-1]
    assert isinstance(done, ModelDone)
    assert done.usage.prompt_tokens == sum(map(len, shown)) // 4
    assert done.usage.completion_tokens == len("one two three") // 4


async def test_it_looks_at_no_more_messages_than_it_needs() -> None:
    unreadable = EncodedMessage(b"not JSON")
    assert await ask(encode("user", "first"), *[unreadable] * 1000, encode("user", "last"))


async def test_content_in_parts_is_read() -> None:
    parts = [{"type": "text", "text": "!echo look"}, {"type": "image_url", "image_url": {"url": "x"}}]
    chunks = await ask(encode("user", parts))
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, ModelText)) == "look [image_url]"


async def test_no_user_message_at_all_is_answered_too() -> None:
    assert await ask(encode("system", "x"))
    assert await ask()
