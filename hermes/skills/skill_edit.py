"""Edits of a skill's files, as the agent wishes them. They return a new tree and touch no disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hermes.domain.change import ChangeAction
from hermes.domain.skill.skill import FOLDERS, SKILL_FILE, SkillError, check_path, check_portable
from hermes.ports.skills import SkillWish
from hermes.skills.frontmatter import decoded, parse
from hermes.skills.skill_tree import SkillTree, TreeFile, check_tree

_OWN_FILES: Final = frozenset({SKILL_FILE, "README.md", "LICENSE", "LICENSE.txt"})


def edited(tree: SkillTree, wish: SkillWish) -> SkillTree:
    """Return the files after the change; none after a deletion. Raises SkillError."""
    match wish.action:
        case ChangeAction.DELETE:
            return {}
        case ChangeAction.CREATE | ChangeAction.EDIT:
            changed = {**tree, SKILL_FILE: TreeFile(data=wish.content.encode(errors="replace"))}
            check_portable(_fields(changed), wish.name)
        case ChangeAction.PATCH:
            changed = _patched(tree, wish)
        case ChangeAction.WRITE_FILE:
            changed = _with_file(tree, wish)
        case ChangeAction.REMOVE_FILE:
            if wish.path == SKILL_FILE or wish.path not in tree:
                raise SkillError(f"{wish.name} has no file {wish.path[:100]!r} that could be removed")
            changed = {path: tree[path] for path in tree if path != wish.path}
        case _:
            raise SkillError(f"{wish.action.value} is not a change of a skill")
    check_tree(changed, wish.name)
    return changed


def _patched(tree: SkillTree, wish: SkillWish) -> dict[str, TreeFile]:
    path = wish.path or SKILL_FILE
    file = tree.get(path)
    if file is None:
        raise SkillError(f"{wish.name} has no file {path[:100]!r}")
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        raise SkillError(f"{path} is not text") from None
    found = text.count(wish.old_text) if wish.old_text else 0
    if found != 1:
        where = "is not in" if not found else f"is {found} times in"
        raise SkillError(f"old_text {where} {path}; it must be there exactly once")
    data = text.replace(wish.old_text, wish.new_text).encode(errors="replace")
    return {**tree, path: TreeFile(data=data, executable=file.executable)}


def _with_file(tree: SkillTree, wish: SkillWish) -> dict[str, TreeFile]:
    first = check_path(wish.path)[0]
    if wish.path == SKILL_FILE:
        raise SkillError("edit or patch changes SKILL.md")
    if first not in FOLDERS and wish.path not in _OWN_FILES:
        raise SkillError(f"files of a skill are in {', '.join(f'{each}/' for each in FOLDERS)}")
    executable = wish.path in tree and tree[wish.path].executable
    is_script = first == "scripts" and wish.content.startswith("#!")
    data = wish.content.encode(errors="replace")
    return {**tree, wish.path: TreeFile(data=data, executable=executable or is_script)}


def _fields(tree: SkillTree) -> Mapping[str, Any]:
    return parse(decoded(tree[SKILL_FILE].data)).fields
