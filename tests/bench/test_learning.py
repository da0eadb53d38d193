"""Facts and scripted models of the bench on learning: they must not know what they are asked for."""

from __future__ import annotations

import json
from typing import Any

from bench.learning.fact_recall import _EMPTY_WORDS, _WORD, MODES, RecallingModel
from bench.learning.facts import facts
from bench.learning.skill_reuse import ReleasingModel


def content_words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)} - _EMPTY_WORDS


def test_there_are_fifty_facts_and_half_of_the_questions_use_other_words() -> None:
    known = facts()
    assert len({fact.text for fact in known}) == len({fact.question for fact in known}) == 50
    other = [fact for fact in known if not fact.same_words]
    assert len(other) == 25
    assert [fact.text for fact in other if content_words(fact.text) & content_words(fact.question)] == []
    assert all(fact.value not in fact.question and fact.pattern.search(fact.text) for fact in known)


def body(*messages: dict[str, Any], tools: tuple[str, ...] = ()) -> dict[str, Any]:
    offered = [{"function": {"name": name}} for name in tools]
    return {"messages": [{"role": "system", "content": "prompt"}, *messages], "tools": offered}


def test_the_model_answers_with_what_it_sees_alone() -> None:
    fact = facts()[0]
    model = RecallingModel(facts())
    asked = {"role": "user", "content": fact.question}
    assert fact.value not in str(model.reply(body(asked)))
    assert "session_search" in str(model.reply(body(asked, tools=("session_search",))))
    seen = {"role": "tool", "content": f"1. >>>{fact.text[:3]}<<<{fact.text[3:]}"}
    assert fact.value in str(model.reply(body(asked, seen)))
    assert set(MODES) == {"neither", "memory", "search", "recall", "meaning"}


def test_the_releasing_model_follows_hints_and_knows_no_option() -> None:
    model = ReleasingModel()
    asked = {"role": "user", "content": "Release version 7."}
    assert "--" not in json.dumps(str(model.reply(body(asked))))
    called = {
        "role": "assistant",
        "tool_calls": [{"function": {"name": "terminal", "arguments": '{"command": "x"}'}}],
    }
    hint = {"role": "tool", "content": "error: try --region=north-3"}
    assert "x --region=north-3" in str(model.reply(body(asked, called, hint)))
