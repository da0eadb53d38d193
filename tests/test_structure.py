"""Structure of the tree: a public class name stands for one thing, and a folder can be taken in with one look."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import hermes

SOURCES = sorted(Path(hermes.__path__[0]).rglob("*.py"))
MAX_FILES = 20


def test_public_class_name_is_used_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in SOURCES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_folder_has_at_most_twenty_modules() -> None:
    modules: dict[Path, int] = defaultdict(int)
    for path in SOURCES:
        modules[path.parent] += path.name != "__init__.py"
    assert {str(folder): count for folder, count in modules.items() if count > MAX_FILES} == {}
