"""Operations of the file tools. Blocking: run them in a thread or in the worker inside a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from hermes.tools.files import patch as patching
from hermes.tools.files import v4a
from hermes.tools.files.file_reader import check_regular, missing, read_page
from hermes.tools.files.replacement import replace_file
from hermes.tools.tool import ToolError


class Operation(StrEnum):
    READ = "read"
    WRITE = "write"
    PATCH = "patch"
    FIND_ROOT = "find_root"  # start directory of a search


class PathNames(Protocol):
    """Conversion between paths as the model writes them and real paths."""

    def resolve(self, path: str, *, writing: bool) -> str:
        """Return the real path. Raises ToolError."""

    def shown(self, real: str) -> str: ...


def perform(
    operation: Operation,
    arguments: Mapping[str, Any],
    names: PathNames,
    cancelled: Callable[[], bool] = lambda: False,
) -> str:
    """Run one operation and return its result for the model. Raises ToolError and OSError."""
    match operation:
        case Operation.READ:
            real = names.resolve(arguments["path"], writing=False)
            return read_page(real, arguments["offset"], arguments["limit"], cancelled)
        case Operation.WRITE:
            return _written(names.resolve(arguments["path"], writing=True), arguments["content"])
        case Operation.PATCH:
            return _patched(names, arguments)
        case Operation.FIND_ROOT:
            return _root(names.resolve(arguments["path"], writing=False))


def patched_paths(arguments: Mapping[str, Any]) -> list[str]:
    if arguments.get("mode") == "patch":
        if not arguments.get("patch"):
            raise ToolError("mode=patch needs the argument patch.")
        return v4a.paths(v4a.parse(arguments["patch"]))
    for name in ("path", "old_string", "new_string"):
        if arguments.get(name) is None:
            raise ToolError(f"mode=replace needs the argument {name}.")
    return [arguments["path"]]


def _written(path: str, content: str) -> str:
    try:
        data = content.encode()
    except UnicodeEncodeError:
        raise ToolError(
            "The content contains a lone surrogate, which cannot be written. Nothing was changed."
        ) from None
    file = Path(path)
    try:
        check_regular(file.stat().st_mode, path)
        done = "overwritten"
    except FileNotFoundError:
        file.parent.mkdir(parents=True, exist_ok=True)
        done = "created"
    replace_file(file, data)
    return f"{path} was {done}: {len(data):,} bytes, {len(content.splitlines()):,} lines"


def _patched(names: PathNames, arguments: Mapping[str, Any]) -> str:
    real = {path: names.resolve(path, writing=True) for path in patched_paths(arguments)}
    if arguments["mode"] == "patch":
        changes = patching.plan_patch(v4a.parse(arguments["patch"]), real.__getitem__)
        said = f"{len(changes)} files changed" if len(changes) != 1 else "1 file changed"
    else:
        old, new = arguments["old_string"], arguments["new_string"]
        change, places = patching.plan_replace(real[arguments["path"]], old, new, every=arguments["replace_all"])
        changes, said = [change], f"changed in {places}"
    patching.apply(changes)
    return "\n".join([said, *(patching.diff(change, names.shown(change.path)) for change in changes)])


def _root(real: str) -> str:
    try:
        if not Path(real).is_dir():
            check_regular(Path(real).stat().st_mode, real)
    except (FileNotFoundError, NotADirectoryError):
        raise ToolError(missing(real)) from None
    return real
