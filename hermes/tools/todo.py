"""Todo tool: the model's task list for a conversation.

The list is one file in the conversation's folder, replaced atomically. At most one item is in progress. After a
compression `todo_text` shows the open items to the model again.
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
    "items in order, each with id, content and status (pending, in_progress, completed or cancelled); "
    "omit to read the list"
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
        merge: Annotated[bool, "update or add the given items by id instead of replacing the list"] = False,
    ) -> str:
        """Keep a task list for work with three or more steps.

        Pass `todos` to write the list, omit it to read. Returns the whole list. Keep at most one item in progress
        and mark it completed as soon as it is done.
        """
        return await asyncio.to_thread(_update, context.folder, todos, merge=merge)

    return todo


def todo_text(folder: Path) -> str:
    """Return the open items as text; empty if there are none. Blocking: call it in a thread."""
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
        raise ToolError(f"Two items have the id {twice!r}; ids must be unique. The list was not changed.")
    for number, (id_, change) in enumerate(zip(given, changes, strict=True), 1):
        items[id_] = _item(f"item {number}", items.get(id_), {**change, "id": id_})
    active = [item.id for item in items.values() if item.status == "in_progress"]
    if len(active) > 1:
        raise ToolError(f"Items {', '.join(active)} are in progress; at most one may be. The list was not changed.")
    if len(items) > _MAX_ITEMS:
        raise ToolError(f"A list has at most {_MAX_ITEMS} items. The list was not changed.")
    return tuple(items.values())


def _item(where: str, old: TodoItem | None, change: Mapping[str, str]) -> TodoItem:
    if unknown := sorted(set(change) - _FIELDS):
        raise ToolError(
            f"{where}: unknown field {unknown[0]!r}; use id, content and status. The list was not changed."
        )
    content = " ".join(change.get("content", old.content if old else "").split())
    status = change.get("status", old.status if old else "pending")
    if not change["id"] or not content:
        raise ToolError(f"{where}: id and content are required. The list was not changed.")
    if status not in _MARKS:
        raise ToolError(f"{where}: status must be one of {', '.join(_MARKS)}. The list was not changed.")
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
        logger.warning("todo: the list in {} is damaged; treating it as empty", _file(folder))
        return ()
