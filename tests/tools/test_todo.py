from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from hermes.tools.todo import todo_text
from tests.tools.workbench import Workbench

LIST = [
    {"id": "1", "content": "look", "status": "completed"},
    {"id": "2", "content": "leap", "status": "in_progress"},
    {"id": "3", "content": "land"},
]


async def test_a_list_is_written_and_read_back(bench: Workbench) -> None:
    assert await bench.text("todo") == "The task list is empty."
    written = await bench.text("todo", todos=LIST)
    assert written == "[x] 1: look\n[>] 2: leap\n[ ] 3: land\n1 of 3 done"
    assert await bench.text("todo") == written
    file = bench.folder / "todo.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in bench.folder.iterdir()] == ["todo.json"]


async def test_a_merge_changes_by_id_and_keeps_the_order(bench: Workbench) -> None:
    await bench.text("todo", todos=LIST)
    changes = [{"id": "2", "status": "completed"}, {"id": "4", "content": "rest", "status": "in_progress"}]
    assert (await bench.text("todo", todos=changes, merge=True)).splitlines() == [
        "[x] 1: look",
        "[x] 2: leap",
        "[ ] 3: land",
        "[>] 4: rest",
        "2 of 4 done",
    ]


async def test_only_open_items_are_shown_again_after_a_compression(bench: Workbench) -> None:
    assert (await asyncio.to_thread(todo_text, bench.folder)) == ""
    await bench.text("todo", todos=LIST)
    assert (await asyncio.to_thread(todo_text, bench.folder)).splitlines()[1:] == ["[>] 2: leap", "[ ] 3: land"]
    await bench.text(
        "todo", todos=[{"id": "2", "status": "cancelled"}, {"id": "3", "status": "completed"}], merge=True
    )
    assert (await asyncio.to_thread(todo_text, bench.folder)) == ""


@pytest.mark.parametrize(
    ("todos", "said"),
    [
        ([{"id": "a", "content": "x", "status": "in_progress"}, *LIST], "Items a, 2 are in progress"),
        ([{"id": "a", "content": "x"}, {"id": "a", "content": "y"}], "Two items have the id 'a'"),
        ([{"id": "a", "content": " "}], "id and content are required"),
        ([{"content": "x"}], "id and content are required"),
        ([{"id": "a", "content": "x", "status": "done"}], "must be one of pending, in_progress"),
        ([{"id": "a", "content": "x", "owner": "me"}], "unknown field 'owner'"),
        ([{"id": str(n), "content": "x"} for n in range(300)], "at most 200"),
        ([{"id": 1, "content": "x"}], "'todos[0].id' must be of type string"),
    ],
)
async def test_a_list_that_makes_no_sense_changes_nothing(bench: Workbench, todos: Any, said: str) -> None:
    before = await bench.text("todo", todos=LIST)
    assert said in await bench.problem("todo", todos=todos)
    assert await bench.text("todo") == before


@pytest.mark.parametrize("content", [b"", b"{", b"[5]", b'{"a": 1}', b"\xff", json.dumps([{"id": "1"}]).encode()])
def test_a_damaged_list_counts_as_empty(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "todo.json").write_bytes(content)
    assert todo_text(tmp_path) == ""
