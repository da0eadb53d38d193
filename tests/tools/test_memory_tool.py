from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes.domain.memory.scope import OWNER_SCOPE, MemoryScope, parse_scope
from hermes.domain.values import replace
from hermes.services.memory.memory_service import MemoryService, MemorySettings
from hermes.tools.memory_tool import memory_tool
from hermes.tools.tool import ToolResult
from hermes.tools.toolbox import Toolbox
from tests.support.journals import LoopJournal
from tests.tools.workbench import a_context


class MemoryBench:
    def __init__(self, directory: Path, **settings: Any) -> None:
        self.service = MemoryService(
            journal=LoopJournal(), directory=directory, clock=lambda: 1e12, settings=MemorySettings(**settings)
        )
        self.toolbox = Toolbox((memory_tool(self.service),), toolsets={"default": ["memory"]})
        self.directory = directory
        self.calls = 0

    async def call(self, *, scope: MemoryScope | None = OWNER_SCOPE, **arguments: Any) -> ToolResult:
        self.calls += 1
        context = replace(a_context(self.directory, call=f"call_{self.calls}"), scope=scope)
        proposal = self.toolbox.propose("memory", json.dumps(arguments), context)
        assert not proposal.problem, proposal.problem
        return await self.toolbox.run("memory", proposal.arguments, context)


@pytest.fixture
def bench(tmp_path: Path) -> MemoryBench:
    return MemoryBench(tmp_path)


async def test_result_shows_the_live_state(bench: MemoryBench) -> None:
    result = await bench.call(action="add", content="One.")
    assert result == ToolResult(text="Stored as change 1. memory has 4 of 2,200 characters:\n1. (4 characters) One.")
    result = await bench.call(action="replace", content="Two.", old_text="One")
    assert result.text.endswith("1. (4 characters) Two.")
    result = await bench.call(action="remove", old_text="Two")
    assert result.text.endswith("no entries")


async def test_batch_is_all_or_nothing(bench: MemoryBench) -> None:
    await bench.call(action="add", content="One.")
    edits = [{"action": "add", "content": "Two."}, {"action": "remove", "old_text": "missing"}]
    result = await bench.call(operations=edits)
    assert not result.ok
    assert "operation 2: no entry contains 'missing'" in result.text
    edits[1] = {"action": "remove", "old_text": "One"}
    assert (await bench.call(operations=edits)).text.endswith("\n1. (4 characters) Two.")


async def test_refusals_tell_the_model_what_to_do(tmp_path: Path) -> None:
    bench = MemoryBench(tmp_path, memory_char_limit=10)
    for arguments in (
        {},
        {"action": "add", "content": "x" * 11},
        {"action": "add", "content": "a", "operations": [{"action": "add", "content": "b"}]},
        {"operations": [{"action": "add", "content": "b", "target": "user"}]},
    ):
        result = await bench.call(**arguments)
        assert not result.ok
    assert await bench.service.log(OWNER_SCOPE, OWNER_SCOPE.targets[0]) == []


async def test_conversation_without_memory_stores_nothing(bench: MemoryBench) -> None:
    result = await bench.call(scope=None, action="add", content="x")
    assert not result.ok
    assert not list(bench.directory.iterdir())


async def test_shared_chat_has_no_notes_about_a_person(bench: MemoryBench) -> None:
    chat = parse_scope("chat:telegram:-5")
    assert not (await bench.call(scope=chat, target="user", action="add", content="x")).ok
    assert (await bench.call(scope=chat, action="add", content="x")).ok


async def test_write_that_waits_for_approval_says_so(tmp_path: Path) -> None:
    bench = MemoryBench(tmp_path, write_approval=True)
    assert "Waits for the person's approval as number 1" in (await bench.call(action="add", content="x")).text
