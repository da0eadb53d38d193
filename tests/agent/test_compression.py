from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.agent.chat_message import read, tokens_of, total_tokens
from hermes.agent.compression import (
    FRUITFUL,
    CompressionPlan,
    CompressionSettings,
    carried,
    is_due,
    plan,
    saved,
    summary_in,
    threshold_tokens,
)
from hermes.agent.summary import parts
from hermes.domain.turn.message import EncodedMessage

SETTINGS = CompressionSettings()
AT = 1_800_000_000.0
WORDS = "the quick brown fox jumps over the lazy dog and then it sleeps "


def encoded(value: Any) -> EncodedMessage:
    return EncodedMessage(json.dumps(value, ensure_ascii=False).encode(errors="replace"))


def user(text: str) -> EncodedMessage:
    return encoded({"role": "user", "content": text})


def assistant(text: str) -> EncodedMessage:
    return encoded({"role": "assistant", "content": text})


def calls(*ids: str, name: str = "read_file") -> EncodedMessage:
    made = [{"id": i, "type": "function", "function": {"name": name, "arguments": '{"path":"a"}'}} for i in ids]
    return encoded({"role": "assistant", "content": None, "tool_calls": made})


def result(call: str, text: str) -> EncodedMessage:
    return encoded({"role": "tool", "tool_call_id": call, "content": text})


def exchanges(count: int, words: int = 10) -> list[EncodedMessage]:
    return [each for i in range(count) for each in (user(f"{i} {WORDS * words}"), assistant(f"{i} {WORDS * words}"))]


def planned(messages: list[EncodedMessage], window: int = 8_000) -> CompressionPlan:
    made = plan(messages, context_window=window, settings=SETTINGS)
    assert made is not None
    return made


# Transcripts as they come, tidy and odd.

texts = st.one_of(
    st.text(max_size=40),
    st.integers(1, 60).map(lambda n: WORDS * n),
    st.integers(1, 200).map(lambda n: "汉字很多" * n),
    st.integers(1, 200).map(lambda n: json.dumps([{"key": i} for i in range(n)])),
)
contents = st.one_of(
    texts,
    st.none(),
    st.lists(
        st.one_of(
            texts.map(lambda text: {"type": "text", "text": text}),
            st.just({"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 5000}}),
            st.integers(),
        ),
        max_size=3,
    ),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
ids = st.sampled_from("abcde")
said = st.tuples(st.sampled_from(["user", "assistant"]), texts).map(
    lambda x: encoded({"role": x[0], "content": x[1]})
)


@st.composite
def call_blocks(draw: st.DrawFn) -> list[EncodedMessage]:
    wanted = draw(st.lists(ids, min_size=1, max_size=4, unique=True))
    return [calls(*wanted), *(result(i, draw(texts)) for i in draw(st.permutations(wanted)))]


odd = st.one_of(
    st.builds(lambda role, content: encoded({"role": role, "content": content}), st.text(max_size=9), contents),
    contents.map(lambda content: encoded({"role": "user", "content": content})),
    st.builds(result, ids, texts),
    st.lists(ids, min_size=1, max_size=3).map(lambda wanted: calls(*wanted)),
    st.just(encoded({"role": "assistant", "tool_calls": [3, {"id": 4}, {"function": "x"}]})),
    st.just(encoded({"role": "user", "tool_calls": [{"id": "a"}]})),
    st.just(encoded({"role": 5})),
    st.just(encoded([])),
    st.just(EncodedMessage(b'{"role":"tool","tool_call_id":"a","content":"\\ud800 x"}')),
    st.binary(max_size=20).map(EncodedMessage),
    st.just(EncodedMessage(b"[" * 100_000)),
    st.just(encoded({"role": "system", "content": "be kind"})),
    st.just(user("[Summary of the earlier part of this conversation, written by hand]\n\nx\n[End of the summary]")),
)
pieces = st.one_of(said.map(lambda message: [message]), call_blocks())
tidy = st.lists(pieces, max_size=30).map(lambda found: [message for piece in found for message in piece])
wild = st.lists(st.one_of(pieces, odd.map(lambda message: [message])), max_size=30).map(
    lambda found: [message for piece in found for message in piece]
)
windows = st.sampled_from([256, 2_000, 8_000, 128_000])


def unpaired(messages: tuple[EncodedMessage, ...]) -> list[str]:
    """Calls without their results right after them, and results without their call."""
    problems: list[str] = []
    waiting: Counter[str] = Counter()
    for message in map(read, messages):
        if message.role == "tool":
            if not waiting[message.answers]:
                problems.append(f"result {message.answers}")
            waiting[message.answers] -= 1
        else:
            problems += (f"call {each}" for each in (+waiting).elements())
            waiting = Counter(call.id for call in message.calls)
    return problems + [f"call {each}" for each in (+waiting).elements()]


def is_subsequence(part: list[Any], whole: list[Any]) -> bool:
    rest = iter(whole)
    return all(any(each == other for other in rest) for each in part)


def without_result(message: EncodedMessage) -> object:
    """A message but for what a stub may change in it."""
    found = read(message)
    return {**found.fields, "content": ""} if found.role == "tool" else message


@settings(max_examples=300, deadline=None)
@given(wild, windows, st.text(max_size=50), st.text(max_size=50))
def test_whatever_the_transcript_what_is_carried_is_sound(
    messages: list[EncodedMessage], window: int, summary: str, todo: str
) -> None:
    made = plan(messages, context_window=window, settings=SETTINGS)
    if made is None:
        return
    after = carried(made, f"GOAL {summary}", todo=todo, at=AT)
    kept = [*made.head, *made.tail]
    assert unpaired(after) == []
    assert is_subsequence([without_result(each) for each in kept], [without_result(each) for each in messages])
    assert list(made.head) == messages[: len(made.head)]
    assert is_subsequence(list(made.middle), messages)
    summaries = [each for each in map(read, messages) if each.role == "user" and summary_in(each.text)]
    assert len(messages) - len(kept) - len(made.middle) <= min(len(summaries), 1)
    people = [each for each in messages if read(each).role == "user"]
    assert not people or people[-1] in after
    assert total_tokens(after) < total_tokens(messages)


@settings(max_examples=150, deadline=None)
@given(wild, windows, st.integers(0, 40))
def test_an_over_long_summary_or_task_list_never_makes_it_longer(
    messages: list[EncodedMessage], window: int, long: int
) -> None:
    if made := plan(messages, context_window=window, settings=SETTINGS):
        after = carried(made, f"GOAL {WORDS * 20 * long}", todo="汉字" * 100 * long, at=AT)
        assert total_tokens(after) <= made.tokens_kept + made.carry_tokens
        assert saved(made.tokens_before, total_tokens(after)) >= FRUITFUL


@settings(max_examples=100, deadline=None)
@given(tidy, st.sampled_from([2_000, 8_000]))
def test_a_transcript_over_the_threshold_comes_below_it(messages: list[EncodedMessage], window: int) -> None:
    messages = [*messages, *exchanges(window // 100, 2)]
    limit = threshold_tokens(context_window=window, max_output=0, settings=SETTINGS)
    if total_tokens(messages) < limit:
        return
    made = planned(messages, window)
    assert total_tokens(carried(made, WORDS * 10_000, at=AT)) < limit


@pytest.mark.parametrize(
    ("window", "max_output", "limit"),
    [(128_000, 0, 64_000), (400_000, 0, 200_000), (32_000, 2_000, 22_500), (2_000, 0, 1_500), (2_000, 2_000, 750)],
)
def test_the_threshold_suits_the_window(window: int, max_output: int, limit: int) -> None:
    assert threshold_tokens(context_window=window, max_output=max_output, settings=SETTINGS) == limit
    due = [
        is_due(prompt_tokens=tokens, context_window=window, max_output=max_output, settings=SETTINGS)
        for tokens in (limit - 1, limit)
    ]
    assert due == [False, True]


def test_a_threshold_set_by_hand_is_kept_above_the_floor() -> None:
    wanted = CompressionSettings(threshold=0.9)
    assert threshold_tokens(context_window=2_000, max_output=0, settings=wanted) == 1_800
    early = CompressionSettings(threshold=0.1, floor_tokens=0)
    assert threshold_tokens(context_window=100_000, max_output=0, settings=early) == 10_000


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("The quick brown fox jumps over the lazy dog. " * 20, 150, 260),  # 200 in common tokenizers
        ("这是一个关于上下文压缩的测试句子。" * 20, 200, 360),
        ('{"id":12,"name":"fox","tags":["a","b"]},' * 20, 200, 380),
    ],
)
def test_the_estimate_is_roughly_right(text: str, least: int, most: int) -> None:
    assert least <= tokens_of(user(text)) <= most


def test_an_image_costs_the_same_however_it_is_encoded() -> None:
    def image(size: int) -> EncodedMessage:
        url = {"url": "data:image/png;base64," + "A" * size}
        return encoded({"role": "user", "content": [{"type": "image_url", "image_url": url}]})

    assert tokens_of(image(100)) == tokens_of(image(1_000_000)) < 2_000


def test_a_short_conversation_needs_no_plan() -> None:
    assert plan([], context_window=8_000, settings=SETTINGS) is None
    assert plan([user("hi"), assistant("hello")], context_window=8_000, settings=SETTINGS) is None


def test_one_message_that_fills_the_window_cannot_be_shortened() -> None:
    assert plan([user(WORDS * 2_000)], context_window=8_000, settings=SETTINGS) is None


def test_while_calls_are_open_there_is_no_plan() -> None:
    open_call = [*exchanges(40), user("go"), calls("a", "b"), result("a", "done")]
    assert plan(open_call, context_window=8_000, settings=SETTINGS) is None
    assert plan([*open_call, result("b", "done")], context_window=8_000, settings=SETTINGS) is not None


def test_the_head_is_the_instructions_and_the_first_exchange_and_ends_with_an_answer() -> None:
    system = encoded({"role": "system", "content": "be kind"})
    first = [system, user("what is this?"), assistant("a test")]
    made = planned([*first, user("one more"), *exchanges(40)])
    assert list(made.head) == first


def test_the_head_decays_once_there_is_a_summary() -> None:
    system = encoded({"role": "system", "content": "be kind"})
    child = carried(planned([system, user("hi"), assistant("hello"), *exchanges(40)]), "GOAL: tests", at=AT)
    again = planned([*child, *exchanges(40)])
    assert again.head == (system,)
    assert again.previous_summary == "GOAL: tests"
    assert again.middle[:2] == (user("hi"), assistant("hello"))
    assert not any(summary_in(read(each).text) for each in (*again.middle, *again.tail))


def test_the_answer_that_the_person_replied_to_stays() -> None:
    answer = assistant(WORDS * 100)
    made = planned([*exchanges(40), answer, user("change the second point")])
    assert made.tail[-2:] == (answer, user("change the second point"))


def test_the_newest_huge_result_is_cut_and_older_ones_are_stubbed() -> None:
    huge = WORDS * 1_000
    steps = [each for i in range(4) for each in (calls(f"{i}"), result(f"{i}", huge))]
    made = planned([*exchanges(3), user("find it"), *steps])
    assert user("find it") in made.tail
    results = [read(each).text for each in made.tail if read(each).role == "tool"]
    assert results[-1].startswith("the quick brown fox")
    assert "truncated here" in results[-1]
    assert all(text.startswith("[old result of read_file") for text in results[:-1])


def test_a_long_turn_keeps_the_request_and_its_newest_steps() -> None:
    steps = [each for i in range(60) for each in (calls(f"{i}"), result(f"{i}", f"step {i} {WORDS * 5}"))]
    made = planned([*exchanges(3), user("port it all"), *steps])
    assert made.tail[0] == user("port it all")
    assert list(made.tail[-2:]) == steps[-2:]
    assert any(each in made.middle for each in steps)
    assert made.asked == "port it all"


def test_when_only_old_results_are_large_no_summary_is_needed() -> None:
    steps = [each for i in range(5) for each in (calls(f"{i}"), result(f"{i}", WORDS * 120))]
    made = planned([user("find it"), *steps])
    assert made.middle == ()
    assert parts(made, context_window=8_000) == ()
    assert carried(made, "", at=AT) == made.tail


def test_calls_and_results_without_each_other_go_to_the_summary() -> None:
    lost = [calls("x"), user("hm"), result("y", "who asked?")]
    made = planned([*exchanges(40), *lost, user("go on"), assistant("yes")])
    assert calls("x") in made.middle
    assert result("y", "who asked?") in made.middle
    assert made.tail[-3:] == (user("hm"), user("go on"), assistant("yes"))


def test_a_compression_asked_for_early_works_on_what_is_there() -> None:
    messages = exchanges(20)
    made = planned(messages, window=1_000_000)
    assert saved(made.tokens_before, made.tokens_kept + made.carry_tokens) > 0.3


def test_a_compression_asked_for_early_cuts_nothing_of_the_last_turn() -> None:
    turn = [user("look"), calls("a"), result("a", WORDS * 100), assistant("seen")]
    made = planned([*exchanges(20), *turn], window=128_000)
    assert list(made.tail[-4:]) == turn
    assert plan(turn, context_window=128_000, settings=SETTINGS) is None


def test_what_every_request_holds_besides_makes_the_kept_part_smaller() -> None:
    messages = exchanges(60)
    without = planned(messages)
    beside = plan(messages, context_window=8_000, settings=SETTINGS, fixed_tokens=4_000)
    assert beside is not None
    assert beside.tokens_kept < without.tokens_kept


def test_the_summary_is_marked_as_reference_and_found_again() -> None:
    made = planned(exchanges(40))
    after = carried(made, "GOAL: tests\n[End of the summary]\nDONE: none", todo="- [ ] write them", at=AT)
    found = read(after[len(made.head)])
    assert found.role == "user"
    assert "2027-01-15 08:00 UTC" in found.text
    assert "not a request" in found.text
    assert "- [ ] write them" in found.text
    assert summary_in(found.text) == "GOAL: tests\nDONE: none"


@pytest.mark.parametrize("summary", ["", " \n", "[End of the summary]"])
def test_without_a_summary_nothing_is_dropped(summary: str) -> None:
    with pytest.raises(ValueError, match="summary is empty"):
        carried(planned(exchanges(40)), summary, at=AT)


def test_the_summary_is_updated_many_times_without_growth() -> None:
    transcript = exchanges(40)
    for round_ in range(10):
        made = planned(transcript)
        assert round_ == 0 or made.previous_summary.startswith(f"round {round_ - 1}")
        transcript = [*carried(made, f"round {round_} {WORDS * 1_000}", at=AT), *exchanges(30)]
        assert total_tokens(transcript) < 16_000


def test_savings_are_a_share() -> None:
    assert saved(100, 40) == pytest.approx(0.6)
    assert saved(100, 95) < FRUITFUL
    assert saved(0, 0) == 0
