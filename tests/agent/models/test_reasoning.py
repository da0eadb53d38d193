"""Reasoning is removed from answers, however it is cut into chunks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.models.protocols.reasoning import ReasoningFilter, visible

PIECES = (
    "<think>",
    "</think>",
    "<thinking>",
    "</thinking>",
    "<thi",
    "nk>",
    "```",
    "~~~",
    "\n",
    " ",
    "a",
    "b c",
    "<",
    "é",
)
texts = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
words = st.text(st.characters(exclude_characters="<`~", exclude_categories=["Cs"]), max_size=30)


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("<think>let me see</think>visible answer", "visible answer"),
        ("<think>\na\n</think>\n\nvisible", "visible"),
        ("\n <think>a</think> b", "b"),
        ("<THINK>a</Think>b", "b"),
        ("<thinking>a</thinking>b", "b"),
        ("<think>a</think>\n<think>b</think>\nc", "c"),
        ("one\n<think>a</think>two\n<think>b</think>three", "one\ntwo\nthree"),
        ("<think>never closed", ""),
        ("one\n<think>never closed", "one\n"),
        ("<think>a ``` b</think>c", "c"),
        ("use the <think> tag like <think>this</think>", "use the <think> tag like <think>this</think>"),
        ("`<think>` is a tag", "`<think>` is a tag"),
        ("```xml\n<think>a</think>\n```\n<think>b</think>c", "```xml\n<think>a</think>\n```\nc"),
        (
            "~~~~\n```\n<think>a\n~~~\n<think>b\n~~~~\n<think>c</think>d",
            "~~~~\n```\n<think>a\n~~~\n<think>b\n~~~~\nd",
        ),
        ("let me see\n</think>\n\nvisible", "visible"),
        ("</think>\nvisible", "visible"),
        ("a\n\n</THINKING>visible\n</think>", "visible\n</think>"),
        ("the tag `</think>` ends it", "the tag `</think>` ends it"),
        ("```\n</think>\n```\n", "```\n</think>\n```\n"),
        ("</thinker>a", "</thinker>a"),
        ("<thinker>a", "<thinker>a"),
        ("<thi", "<thi"),
        ("  \n", "  \n"),
        ("", ""),
    ],
)
def test_reasoning_is_removed(answer: str, shown: str) -> None:
    assert visible(answer) == shown


@given(texts, st.data())
def test_chunks_make_no_difference(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    parser = ReasoningFilter()
    shown: list[str] = []
    for start, end in pairwise([0, *cuts, len(text)]):
        piece = parser.feed(text[start:end])
        if parser.take_back():
            shown.clear()
        shown.append(piece)
    assert "".join(shown) + parser.finish() == visible(text)


@given(words, st.booleans())
def test_text_without_tags_is_unchanged(text: str, each: bool) -> None:
    parser = ReasoningFilter()
    chunks = list(text) if each else [text]
    assert "".join(map(parser.feed, chunks)) + parser.finish() == text


@given(words, words)
def test_what_follows_a_block_at_the_beginning_is_the_answer(reasoning: str, answer: str) -> None:
    assert visible(f"<think>{reasoning}</think>{answer}") == answer.lstrip()


@given(texts)
def test_fenced_text_is_unchanged(text: str) -> None:
    fenced = "~~~~~~~~~~~\n" + text.replace("~", "") + "\n~~~~~~~~~~~"
    assert visible(fenced) == fenced


@given(st.lists(st.sampled_from([*"<think>", "a", "\n", "</think>"]), max_size=20), words, words)
def test_reasoning_comes_out_whole_however_it_is_cut(cuts: list[str], thought: str, answer: str) -> None:
    text = f"<think>{thought}{''.join(cuts).replace('<', '')}</think>{answer}"
    parser = ReasoningFilter()
    thoughts = []
    for character in text:
        parser.feed(character)
        thoughts.append(parser.take_thought())
    parser.finish()
    thoughts.append(parser.take_thought())
    assert "".join(thoughts) == thought + "".join(cuts).replace("<", "")


def test_reasoning_that_never_ends_is_reasoning() -> None:
    parser = ReasoningFilter()
    assert parser.feed("<think>half a tho") + parser.feed("ught</thi") + parser.finish() == ""
    assert parser.take_thought() == "half a thought</thi"
