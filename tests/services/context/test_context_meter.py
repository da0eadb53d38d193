"""Meter of the context window: each part of a prompt that was built is found again."""

from __future__ import annotations

import json
from datetime import date

from hermes.agent.chat_message import encode, tokens_of
from hermes.agent.context_files import ContextFile
from hermes.agent.prompt import PromptFacts, build_prompt
from hermes.domain.read.context_report import ContextPart
from hermes.domain.turn.message import EncodedMessage, MessageOrigin
from hermes.services.context.context_meter import prompt_parts, sizes

FULL = PromptFacts(
    today=date(2026, 11, 19),
    zone="UTC",
    marker="x",
    tools=frozenset({"memory", "terminal"}),
    platform="telegram",
    personality="Be kind.",
    skills="# Skills\n- letters: Writes letters.",
    files=(ContextFile(name="AGENTS.md", text="Use tabs."), ContextFile(name="CLAUDE.md", text="Use spaces.")),
    memory="# Memory\nYour notes from earlier conversations.\n- One.\n\n# About the person\nYour notes.\n- Two.",
    session="s",
)


def test_parts_of_a_prompt_are_found_and_complete() -> None:
    text = build_prompt(FULL)
    parts = list(prompt_parts(text))
    assert "".join(part for _, part in parts) == text
    found = dict(parts)
    assert list(found) == [each for each in ContextPart if each in found]
    assert set(found) == {*list(ContextPart)[: list(ContextPart).index(ContextPart.NOW) + 1]}
    assert "Use tabs." in found[ContextPart.PROJECT]
    assert "Use spaces." in found[ContextPart.PROJECT]
    assert "- Two." in found[ContextPart.MEMORY]
    assert found[ContextPart.SKILLS].strip() == FULL.skills
    assert found[ContextPart.NOW].strip().endswith("Session: s")


def test_prompt_without_parts_has_the_others() -> None:
    text = build_prompt(PromptFacts(today=date(2026, 11, 19), zone="UTC", marker="x"))
    assert [part for part, _ in prompt_parts(text)] == [ContextPart.IDENTITY, ContextPart.RULES, ContextPart.NOW]


def test_messages_and_tools_count_by_kind() -> None:
    said = [
        encode({"role": "user", "content": "hello"}),
        encode({"role": "user", "content": "[Note: the tool ran]"}),
        encode({"role": "assistant", "content": "hi"}),
        encode({"role": "tool", "tool_call_id": "c", "content": "done " * 100}),
        encode({"role": "user", "content": "again"}),
    ]
    origins = [MessageOrigin.PERSON] * 5
    origins[1] = MessageOrigin.PROCESS
    tools = json.dumps([{"type": "function", "function": {"name": "memory"}}] * 3).encode()
    found = sizes(prompt=None, instructions=EncodedMessage(b""), tools=tools, messages=said, origins=origins)
    rows = {each.part: (each.items, each.tokens) for each in found}
    assert rows[ContextPart.PEOPLE] == (2, tokens_of(said[0]) + tokens_of(said[4]))
    assert rows[ContextPart.NOTES] == (1, tokens_of(said[1]))
    assert rows[ContextPart.RESULTS] == (1, tokens_of(said[3]))
    assert rows[ContextPart.TOOLS][0] == 3
    assert list(rows) == [
        ContextPart.TOOLS,
        ContextPart.PEOPLE,
        ContextPart.NOTES,
        ContextPart.ANSWERS,
        ContextPart.RESULTS,
    ]
