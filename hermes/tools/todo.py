"""The conversation's task list: what the model set out to do and how far it is.

One file in the conversation's folder, replaced whole. At most one item is in progress, so that it stays plain what is
being done. `todo_text` is for the model's eyes after a compression, when the calls that made the list are gone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from loguru import logger

from hermes.domain.values import dataclass
from hermes.tools.files.replacement import replace_file
from hermes.tools.tool import Tool, ToolContext, ToolError, tool

_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}
_OPEN = ("pending", "in_progress")
_MAX_ITEMS = 200
_FIELDS = frozenset({"id", "content", "status"})
_ITEMS_TEXT = (
    "the items in their order, each with id, content and status (pending, in_progress, completed or cancelled); "
    "leave out to read the list"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoItem:
    id: str
    content: str
    status: str


def todo_tool() -> Tool:
    @tool("todo")
    async def todo(
        context: ToolContext,
        *,
        todos: Annotated[list[dict[str, str]] | None, _ITEMS_TEXT] = None,
        merge: Annotated[bool, "change and add the given items by id instead of replacing the whole list"] = False,
    ) -> str:
        """Keep a task list for work of three steps or more.

        Give `todos` to write it, leave them out to read it; both answer with the whole list. Have one item in
        progress at a time, and mark it completed as soon as it is done.
        """
        return await asyncio.to_thread(_update, context.folder, todos, merge=merge)

    return todo


def todo_text(folder: Path) -> str:
    """The open items, to be shown again; empty when there are none. Blocking: call it in a thread."""
    items = [item for item in _read(folder) if item.status in _OPEN]
    return "\n".join(["The task list has these open items:", *map(_line, items)]) if items else ""


def _update(folder: Path, changes: Sequence[Mapping[str, str]] | None, *, merge: bool) -> str:
    items = _read(folder)
    if changes is not None:
        items = _changed(items if merge else (), changes)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        data = json.dumps([{"id": x.id, "content": x.content, "status": x.status} for x in items], ensure_ascii=False)
        replace_file(_file(folder), data.encode(), mode=0o600)
    if not items:
        return "The task list is empty."
    done = sum(item.status not in _OPEN for item in items)
    return "\n".join([*map(_line, items), f"{done} of {len(items)} done"])


def _changed(before: Sequence[TodoItem], changes: Sequence[Mapping[str, str]]) -> tuple[TodoItem, ...]:
    items = {item.id: item for item in before}
    given = [change.get("id", "").strip() for change in changes]
    if twice := next((each for each in given if given.count(each) > 1), None):
        raise ToolError(f"two items have the id {twice!r}; give each its own. The list is as it was.")
    for number, (id_, change) in enumerate(zip(given, changes, strict=True), 1):
        items[id_] = _item(f"item {number}", items.get(id_), {**change, "id": id_})
    active = [item.id for item in items.values() if item.status == "in_progress"]
    if len(active) > 1:
        raise ToolError(
            f"items {', '.join(active)} would all be in progress; have one at most. The list is as it was."
        )
    if len(items) > _MAX_ITEMS:
        raise ToolError(f"a list has at most {_MAX_ITEMS} items. The list is as it was.")
    return tuple(items.values())


def _item(where: str, old: TodoItem | None, change: Mapping[str, str]) -> TodoItem:
    if unknown := sorted(set(change) - _FIELDS):
        raise ToolError(f"{where}: unknown field {unknown[0]!r}; known are id, content, status")
    content = " ".join(change.get("content", old.content if old else "").split())
    status = change.get("status", old.status if old else "pending")
    if not change["id"] or not content:
        raise ToolError(f"{where}: it needs an id and a content. The list is as it was.")
    if status not in _MARKS:
        raise ToolError(f"{where}: the status must be one of {', '.join(_MARKS)}. The list is as it was.")
    return TodoItem(id=change["id"], content=content, status=status)


def _line(item: TodoItem) -> str:
    return f"{_MARKS[item.status]} {item.id}: {item.content}"


def _file(folder: Path) -> Path:
    return folder / "todo.json"


def _read(folder: Path) -> tuple[TodoItem, ...]:
    try:
        kept: Any = json.loads(_file(folder).read_bytes())
        return tuple(_item("kept", None, {name: str(value) for name, value in each.items()}) for each in kept)
    except FileNotFoundError:
        return ()
    except (ValueError, TypeError, AttributeError, KeyError, ToolError):
        logger.warning("the task list {} is damaged and counts as empty", _file(folder))
        return ()
